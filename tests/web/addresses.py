"""The address of every declared page and of all that the API reads, with real things in the places of names.

A page with a name that nothing is known for fails the tests of all pages: a new noun is a line in `_THINGS`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from fairlane import Fairlane
from fairlane.web.api import GROUPS
from fairlane.web.locations import API
from fairlane.web.page import WebPage
from fairlane.web.pages import PAGES

Things: TypeAlias = Sequence[Any]

_NAME: Final = re.compile(r"\{(\w+)(?::\w+)?\}")


async def _jobs(app: Fairlane) -> Things:
    return [job.id for job in (await app.jobs.afind(limit=500)).items]


async def _letters(app: Fairlane) -> Things:
    return [letter.id for letter in (await app.dead.afind(limit=500)).items]


async def _queues(app: Fairlane) -> Things:
    return [one.name for one in await app.queues.alist()]


async def _tenants(app: Fairlane) -> Things:
    return [one.name for one in (await app.tenants.alist(limit=12)).items]


async def _tasks(app: Fairlane) -> Things:
    return [one.name for one in await app.tasks.alist()]


async def _workers(app: Fairlane) -> Things:
    # The id of a worker is made of its host and numbers, and no host has a slash.
    return [one.id for one in await app.workers.alist() if "/" not in one.id]


async def _gates(app: Fairlane) -> Things:
    return [one.name for one in await app.gates.alist()]


async def _breakers(app: Fairlane) -> Things:
    return [one.name for one in await app.breakers.alist()]


async def _budgets(app: Fairlane) -> Things:
    return [one.name for one in await app.budgets.alist()]


async def _schedules(app: Fairlane) -> Things:
    return [one.name for one in (await app.schedules.alist()).items]


async def _users(app: Fairlane) -> Things:
    return [one.name for one in await app.users.alist()]


async def _entries(app: Fairlane) -> Things:
    return [one.number for one in (await app.audit.afind()).items if one.is_sealed]


_THINGS: Final[Mapping[str, Callable[[Fairlane], Awaitable[Things]]]] = {
    "jobs": _jobs,
    "dead": _letters,
    "queues": _queues,
    "tenants": _tenants,
    "shares": _tenants,
    "tasks": _tasks,
    "workers": _workers,
    "schedules": _schedules,
    "gates": _gates,
    "breakers": _breakers,
    "budgets": _budgets,
    "guards": _gates,
    "audit": _entries,
    "users": _users,
}
"""By the first word of the path."""


_QUERIES: Final[Mapping[str, str]] = {"/schedule-preview": "?every=3600"}
"""What must be asked with a question."""


def pages() -> list[WebPage]:
    """Return every page that can be opened by its address."""
    return [page for group in PAGES for page in group if page.method == "GET"]


async def addresses(app: Fairlane, most: int | None = None) -> list[str]:
    """Return the addresses of all pages of an application; at most so many of each."""
    return [path for page in pages() for path in (await addresses_of(app, page))[:most]]


async def addresses_of(app: Fairlane, page: WebPage) -> list[str]:
    """Return the addresses of a page: one for each thing that it can show, and there must be one."""
    return await _filled(app, page.path)


async def readings(app: Fairlane) -> list[str]:
    """Return the address of everything that the API reads, but what has no end or asks a worker."""
    endless = {"text/event-stream"}
    return [
        API + path + _QUERIES.get(path, "")
        for group in GROUPS
        for one in group
        if one.method == "GET" and one.produces not in endless and one.limited
        for path in await _filled(app, one.path)
    ]


async def _filled(app: Fairlane, pattern: str) -> list[str]:
    names = _NAME.findall(pattern)
    if not names:
        return [pattern]
    noun = pattern.split("/")[1]
    assert len(names) == 1, f"{pattern} has more names than one: say here what stands for them"
    assert noun in _THINGS, f"nothing is known to show on {pattern}: add its noun to {__name__}"
    found = [_NAME.sub(quote(str(one), safe=""), pattern) for one in await _THINGS[noun](app)]
    assert found, f"there is nothing to show on {pattern}"
    return found
