"""Fold a storm of events: the first of a kind and subject at once, the rest as one with a count.

Example, all of one kind and subject: entries at 0.0 s, 0.4 s and 3.0 s, nothing more. The first pass
publishes the entry of 0.0 s and opens a fold until 10.0 s. The others are counted: 2. The first pass after
10.0 s publishes one entry with the count 2 and closes the fold. An entry at 12.0 s is then a first one again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.journal.entries import NewEntry, PendingEntry
from fairlane.model.journal.kinds import EventKind

FOLD_FOR: Final[Micros] = 10 * SECOND
"""How long entries of one kind and subject are counted after the first one."""

FoldKey: TypeAlias = tuple[str, str | None, str]
"""Kind, tenant and subject; of a decision about a dead letter also what was decided."""


class Fold(msgspec.Struct, frozen=True, array_like=True):
    """What has come after a published event: until when it is counted, how often it came, the last entry."""

    until: Instant
    count: int = 0
    last_at: Instant = 0
    last: NewEntry | None = None


class _Decision(msgspec.Struct, frozen=True):
    """What is read of the body of a decision."""

    review: str = ""


class Folded(msgspec.Struct, frozen=True):
    """What to publish now, each with its instant, and the folds that stay open."""

    published: tuple[tuple[Instant, NewEntry], ...]
    folds: Mapping[FoldKey, Fold]


def fold(pending: Iterable[PendingEntry], folds: Mapping[FoldKey, Fold], now: Instant) -> Folded:
    """Decide which of these entries are published now; the others are counted in a fold.

    Every count of every entry is published exactly once, at the latest by the first call after its fold has
    ended.

    >>> entry = NewEntry(kind="worker_lost", subject="w1")
    >>> first = fold([PendingEntry(1, 0, entry), PendingEntry(2, 5, entry)], {}, 5)
    >>> [(at, one.count) for at, one in first.published]
    [(0, 1)]
    >>> [(at, one.count) for at, one in fold([], first.folds, FOLD_FOR).published]
    [(5, 1)]
    """
    still_open = dict(folds)
    published: list[tuple[Instant, NewEntry]] = []
    for one in pending:
        key = (one.entry.kind, one.entry.tenant, _folded_subject(one.entry))
        found = still_open.get(key)
        if found is not None and one.at >= found.until:
            published += _closing(found)
            found = None
        if found is None:
            published.append((one.at, one.entry))
            still_open[key] = Fold(one.at + FOLD_FOR)
        else:
            still_open[key] = Fold(found.until, found.count + one.entry.count, one.at, one.entry)
    for key, found in list(still_open.items()):
        if found.until <= now:
            published += _closing(found)
            del still_open[key]
    return Folded(tuple(sorted(published, key=lambda item: item[0])), still_open)


def _folded_subject(entry: NewEntry) -> str:
    """Return what entries must have in common beside kind and tenant, to be counted together.

    An entry has one body: decisions that differ would be told as the last of them.

    >>> _folded_subject(NewEntry(kind="dead_letter_reviewed", subject="f1", body=b'{"review":"ignored"}'))
    'f1 ignored'
    """
    if entry.kind != EventKind.DEAD_LETTER_REVIEWED:
        return entry.subject
    return f"{entry.subject} {msgspec.json.decode(entry.body, type=_Decision).review}"


def _closing(found: Fold) -> list[tuple[Instant, NewEntry]]:
    """Return the entry that ends a fold; none if nothing has come after the first."""
    if found.last is None:
        return []
    return [(found.last_at, msgspec.structs.replace(found.last, count=found.count))]
