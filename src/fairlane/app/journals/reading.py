"""Check the filters of journals, and read entries page by page. Changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from datetime import datetime
from typing import Any, Final, TypeAlias, TypedDict, cast

import msgspec
from msgspec.structs import replace

from fairlane.app.admin.validation import instant_or_none, scope_of
from fairlane.app.did_you_mean import did_you_mean
from fairlane.app.enqueue.checks import kind_of
from fairlane.model.journal.entries import Entry, JournalName, PendingEntry
from fairlane.model.journal.kinds import EventKind
from fairlane.model.names import text_hint
from fairlane.store.contract import Store
from fairlane.store.contract.journal import MAX_ENTRIES, EntriesRequest, EntryPage

EVENT_KINDS: Final = tuple(kind.value for kind in EventKind)

_SHOWN: Final = 60

_facts: Final = msgspec.json.Decoder(dict[str, Any]).decode


class JournalFilters(TypedDict, total=False):
    """The filters of a journal. One that is missing or None matches every entry.

    `kind` may be several. `since` (inclusive) and `until` (exclusive) are about when it happened.
    """

    kind: str | Iterable[str] | None
    subject: str | None
    tenant: str | None
    since: datetime | None
    until: datetime | None


class EventFilters(JournalFilters, total=False):
    """The filters of events: those of a journal, and the queue and the task that an event is about."""

    queue: str | None
    task: str | None


Matches: TypeAlias = Callable[[Entry], bool]
"""Whether an entry that a store returned is asked for."""


def any_entry(_: Entry) -> bool:
    """Return True."""
    return True


def event_matcher(filters: EventFilters) -> Matches:
    """Return what compares the queue and the task of an event; no store compares the facts of one."""
    given = {"queue": filters.get("queue"), "task": filters.get("task")}
    wanted = {field: _text(field, name) for field, name in given.items() if name is not None}
    if not wanted:
        return any_entry

    def matches(one: Entry) -> bool:
        facts = _facts(one.entry.body)
        return all(
            facts.get(field) == name or one.entry.subject == f"{field} {name}"
            for field, name in wanted.items()
        )

    return matches


def entries_request(journal: JournalName, filters: JournalFilters) -> EntriesRequest:
    """Return the request for entries that match; TypeError for an unknown filter."""
    known = (EventFilters if journal == "events" else JournalFilters).__annotations__
    unknown = sorted(set(filters) - set(known))
    if unknown:
        message = f"{unknown[0]!r} is not a filter; there are {', '.join(known)}"
        raise TypeError(message)
    subject = filters.get("subject")
    return EntriesRequest(
        journal=journal,
        kinds=_kinds(journal, filters.get("kind")),
        subject=None if subject is None else _text("subject", subject),
        since=instant_or_none("since", filters.get("since")),
        until=instant_or_none("until", filters.get("until")),
        scope=scope_of(filters.get("tenant")),
    )


def _kinds(journal: JournalName, kind: object) -> frozenset[str]:
    if kind is None:
        return frozenset()
    kinds = [_text("kind", one) for one in _several(kind)]
    if not kinds:
        message = "kind names no kind; leave it out for every kind"
        raise ValueError(message)
    for one in kinds:
        if journal == "events" and one not in EVENT_KINDS:
            meant = did_you_mean(one, list(EVENT_KINDS))
            message = f"kind: {one[:_SHOWN]!r} is not a kind of event{meant}; use {', '.join(EVENT_KINDS)}"
            raise ValueError(message)
    return frozenset(kinds)


def _several(kind: object) -> list[object]:
    """Return one or several kinds as a list; a kind is a str, and a str is iterable."""
    if isinstance(kind, Iterable) and not isinstance(kind, str):
        return list(cast("Iterable[object]", kind))
    return [kind]


def _text(field: str, value: object) -> str:
    hint = text_hint(value)
    if hint is None:
        return str(value)
    wrong = "" if isinstance(value, str) else f"is of type {kind_of(value)}; "
    message = f"{field}: {wrong}{hint}"
    raise ValueError(message)


def number_at(cursor: object) -> int:
    """Return the number at which a page continues; ValueError for a cursor from elsewhere.

    >>> number_at(None), number_at("17")
    (0, 17)
    """
    if cursor is None:
        return 0
    if isinstance(cursor, str) and cursor.isdecimal() and cursor.isascii():
        return int(cursor)
    shown = repr(cursor[:_SHOWN]) if isinstance(cursor, str) else f"a value of type {kind_of(cursor)}"
    message = f"{shown} is not a cursor; use the one that came with the page before"
    raise ValueError(message)


def is_matching(one: PendingEntry, request: EntriesRequest) -> bool:
    """Whether an entry without a number matches; stores filter those with one."""
    return (
        request.scope.tenant in {None, one.entry.tenant}
        and (not request.kinds or one.entry.kind in request.kinds)
        and request.subject in {None, one.entry.subject}
        and (request.since is None or one.at >= request.since)
        and (request.until is None or one.at < request.until)
    )


async def newest(
    store: Store, request: EntriesRequest, wanted: int, matches: Matches = any_entry
) -> EntryPage:
    """Return `wanted` entries before `after`, newest first, in several calls if need be; fewer at the end."""
    found: list[Entry] = []
    after: int | None = request.after
    while after is not None and len(found) < wanted:
        limit = min(wanted - len(found), MAX_ENTRIES)
        page = await store.journal.entries(replace(request, after=after, backwards=True, limit=limit))
        found += filter(matches, page.entries)
        after = page.after
    return EntryPage(tuple(found), after)


async def oldest_first(store: Store, request: EntriesRequest) -> AsyncIterator[tuple[Entry, ...]]:
    """Yield the entries after `after` in the order of their numbers, page after page, to the end."""
    while True:
        page = await store.journal.entries(replace(request, limit=MAX_ENTRIES))
        if page.entries:
            yield page.entries
        if page.after is None or page.after == request.after:
            return
        request = replace(request, after=page.after)


def given_number(field: str, number: object) -> int:
    """Return the number of an entry, 0 for before the first."""
    wrong: Any = number
    if isinstance(number, int) and not isinstance(number, bool) and number >= 0:
        return number
    message = f"{field} is {str(wrong)[:_SHOWN]}; use the number of an entry, 0 or more"
    raise ValueError(message)
