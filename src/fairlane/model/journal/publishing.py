"""Decide which entries become events now, under which numbers (S76). Knows no store.

Events are kept for as long as a subscriber has not got them, up to `KEPT_FOR_SUBSCRIBERS` times `most`. What
comes then is counted and not kept; as soon as there is room, one event says how many were lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.journal.entries import Entry, NewEntry, PendingEntry
from fairlane.model.journal.facts import events_lost
from fairlane.model.journal.folding import fold
from fairlane.model.journal.memory import EventMemory

KEPT_FOR_SUBSCRIBERS: Final = 10
"""How many times `most` events are kept while a subscriber has not got them."""


class Published(NamedTuple):
    """The entries that become events, numbered, and the memory of afterwards."""

    entries: tuple[Entry, ...]
    memory: EventMemory


def held_after(memory: EventMemory, last: int) -> int:
    """Return the number after which every event is still needed by a subscriber; `last` without any."""
    return min((one.cursor for one in memory.subscribers.values()), default=last)


def publish(
    pending: Iterable[PendingEntry],
    made: Iterable[NewEntry],
    memory: EventMemory,
    *,
    last: int,
    now: Instant,
    most: int,
) -> Published:
    """Fold pending entries, add those that the duty made itself, and number what is published.

    >>> entry = NewEntry(kind="job_stuck")
    >>> done = publish([PendingEntry(1, 5, entry)], [], EventMemory(), last=7, now=5, most=100)
    >>> [one.number for one in done.entries], len(done.memory.folds)
    ([8], 1)
    """
    folded = fold(pending, memory.folds, now)
    found = [*folded.published, *((now, entry) for entry in made)]
    room = KEPT_FOR_SUBSCRIBERS * most - (last - held_after(memory, last))
    lost = memory.lost
    if lost and room > 0:
        found.insert(0, (now, events_lost(lost)))
        lost = 0
    kept, beyond = found[: max(0, room)], found[max(0, room) :]
    lost += sum(entry.count for _, entry in beyond)
    entries = tuple(Entry(number, at, entry) for number, (at, entry) in enumerate(kept, last + 1))
    return Published(entries, msgspec.structs.replace(memory, folds=folded.folds, lost=lost))


def removable_up_to(
    oldest: Sequence[Entry], memory: EventMemory, *, last: int, most: int, before: Instant
) -> int:
    """Return up to which number events are removed, given the oldest ones; 0: none is.

    Those of `before` or earlier go, and all but the newest `most`; none that a subscriber has not got.

    >>> old = [Entry(3, 5, NewEntry(kind="job_stuck")), Entry(4, 9, NewEntry(kind="job_stuck"))]
    >>> removable_up_to(old, EventMemory(), last=4, most=100, before=5)
    3
    """
    if not oldest:
        return 0
    expired = [one.number for one in takewhile(lambda one: one.at <= before, oldest)]
    up_to = min(max([last - most, *expired]), held_after(memory, last))
    return up_to if up_to >= oldest[0].number else 0
