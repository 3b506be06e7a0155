"""List the pages that a caller may open, by section, with what waits for a person there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from fairlane.web.call import WebCall
from fairlane.web.page import PageGroup, Section

LABELS: Final[Mapping[Section, str]] = {
    "start": "",
    "work": "Work",
    "machinery": "Machinery",
    "watch": "Watch",
}


class NavigationEntry(msgspec.Struct, frozen=True):
    """A noun in the navigation. `badge` is 0 if nothing waits for a person."""

    label: str
    path: str
    icon: str
    key: str
    is_here: bool
    badge: int


async def navigation(call: WebCall, path: str) -> Sequence[tuple[str, Sequence[NavigationEntry]]]:
    """Return the sections that are not empty, with their labels; `path` is the page that is open."""
    sections: dict[Section, list[NavigationEntry]] = {}
    for group in call.site.pages:
        if call.may_see(group.landing):
            sections.setdefault(group.section, []).append(await _entry(call, group, path))
    return [(label, sections[section]) for section, label in LABELS.items() if section in sections]


async def _entry(call: WebCall, group: PageGroup, path: str) -> NavigationEntry:
    landing = group.landing.path
    is_here = path == landing or (landing != "/" and path.startswith(landing + "/"))
    badge = 0 if group.badge is None else await group.badge(call)
    return NavigationEntry(group.label, landing, group.icon, group.key, is_here, badge)
