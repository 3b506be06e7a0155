"""What the pages of the audit and of events share: filters, and where a subject leads. Asks no store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, cast
from urllib.parse import quote, urlencode
from uuid import UUID

import msgspec

from fairlane.app.journals.reading import JournalFilters
from fairlane.model.instants import iso, to_datetime
from fairlane.web.declare import Body

PAGE_SIZE: Final = 50

_SAID: Final = frozenset({"who", "note", "reason", "set_at"})
"""Fields of a pause or an override that its entry has anyway: who, why and when."""

_PAGES: Final[Mapping[str, str]] = {
    "queue": "/queues/",
    "tenant": "/tenants/",
    "task": "/tasks/",
    "worker": "/workers/",
}

_GUARDS: Final = frozenset({"breaker", "budget", "gate"})


class JournalPageQuery(Body, frozen=True, kw_only=True):
    """What the URL of a journal says: which entries, and where the page begins."""

    kind: str = ""
    subject: str = ""
    tenant: str = ""
    since: str = ""
    until: str = ""
    cursor: str | None = None

    def filters(self) -> JournalFilters:
        """Return the filters as `find` takes them; ValueError for an invalid time."""
        return {
            "kind": self.kind or None,
            "subject": self.subject or None,
            "tenant": self.tenant or None,
            "since": _moment("since", self.since),
            "until": _moment("until", self.until),
        }

    def link(self, place: str, **other: str | None) -> str:
        """Return the URL of this list with other values, at its beginning.

        >>> JournalPageQuery(kind="dead_letter", cursor="9").link("/events", tenant="acme")
        '/events?kind=dead_letter&tenant=acme'
        """
        values: dict[str, Any] = msgspec.structs.asdict(self) | {"cursor": None} | other
        given = {name: value for name, value in values.items() if value}
        return place + (f"?{urlencode(given)}" if given else "")


def place_of(subject: str) -> str:
    """Return the page of what an entry is about; empty if it has none.

    >>> place_of("queue mail"), place_of("worker-here-1"), place_of("gate door"), place_of("a word")
    ('/queues/mail', '/workers/worker-here-1', '/guards#gates', '')
    >>> place_of("01a1f46e-23b5-7637-9ee8-db5c24307d65")
    '/jobs/01a1f46e-23b5-7637-9ee8-db5c24307d65'
    """
    noun, _, name = subject.partition(" ")
    if noun.startswith("worker-"):
        noun, name = "worker", noun
    if noun in _PAGES and name:
        return _PAGES[noun] + quote(name, safe="")
    if noun in _GUARDS and name:
        return f"/guards#{noun}s"
    try:
        return f"/jobs/{UUID(name if noun == 'job' else subject)}"
    except ValueError:
        return ""


def flat(values: Mapping[str, Any]) -> dict[str, str]:
    """Return values as texts by name, those inside of others by a path; without what its entry says anyway.

    >>> flat({"override": {"change": {"limit": 1}, "who": "ann", "note": "x", "set_at": 7, "until": None}})
    {'override.limit': '1'}
    >>> flat({"paused": {"who": "ann", "reason": "x", "set_at": 7, "until": 1_800_000_000_000_000}})
    {'paused.until': '2027-01-15T08:00:00.000000Z'}
    >>> flat({"paused": {"who": "ann", "reason": "x"}, "state": "dead"})
    {'paused': 'yes', 'state': 'dead'}
    """
    found: dict[str, str] = {}
    for name, value in values.items():
        if not isinstance(value, dict):
            found |= {} if value is None else {name: _text(name, value)}
            continue
        inner = cast("dict[str, Any]", value)
        members = {key: one for key, one in inner.items() if key not in _SAID}
        for path, text in flat(members).items():
            found[f"{name}.{path}".replace(".change.", ".")] = text
        if inner and not any(path.startswith(f"{name}.") for path in found):
            found[name] = "yes"
    return found


def _text(name: str, value: Any) -> str:
    if name == "until" and isinstance(value, int):
        return iso(to_datetime(value)) or ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _moment(field: str, text: str) -> datetime | None:
    """Return a time of the URL: with an offset, or in UTC as the inputs of browsers send it."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        message = f"{field}: {text[:40]!r} is not a time; write it as in 2026-11-19T08:00Z"
        raise ValueError(message) from None
    return moment if moment.tzinfo is not None else datetime.fromisoformat(text + "+00:00")
