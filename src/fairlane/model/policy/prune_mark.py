"""Which part of the history a pass of pruning has to read, after what earlier ones have (S103).

Without it every pass would read all that some job is kept longer for. Knows ages and instants, no store.
"""

from __future__ import annotations

from typing import Final

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.policy.retention import CountCuts, Retention


class Span(msgspec.Struct, frozen=True, array_like=True):
    """Settlements from `first` to `last`, both included."""

    first: Instant
    last: Instant


class PruneMark(msgspec.Struct, frozen=True, kw_only=True):
    """Where passes with one retention and one scope have arrived; the next pass goes on from here.

    A sweep is a row of passes until nothing is left. `at` and `cut` belong to the last complete sweep,
    `next_at` and `next_cut` to the one under way: nothing settled before `reached` is left in it. It looks
    up its limit by number once, because that may cost more than a pass removes.
    """

    at: Instant = 0
    cut: Instant = 0
    next_at: Instant = 0
    next_cut: Instant = 0
    reached: Instant = 0

    @property
    def is_under_way(self) -> bool:
        """Whether the pass before has left something."""
        return self.next_at > 0


NO_MARK: Final = PruneMark()
"""Nothing is known: the whole history is read once."""


def spans(keep: Retention, now: Instant, cuts: CountCuts, mark: PruneMark) -> tuple[Span, ...]:
    """Return the settlements of which something may have passed its retention since the mark, in order.

    >>> spans(Retention(succeeded=10, cancelled=10, results=5), 100, CountCuts(), PruneMark(at=98))
    (Span(first=89, last=90), Span(first=94, last=95))
    """
    due = [Span(mark.at - age + 1 if mark.at else 0, now - age) for age in keep.ages]
    due.append(Span(mark.cut, cuts.finished - 1))
    found: list[Span] = []
    for one in sorted(due, key=lambda span: span.first):
        first = max(one.first, mark.reached, 0)
        if first > one.last:
            continue
        if found and first <= found[-1].last + 1:
            found[-1] = Span(found[-1].first, max(found[-1].last, one.last))
        else:
            found.append(Span(first, one.last))
    return tuple(found)


def mark_after(
    mark: PruneMark, now: Instant, cuts: CountCuts, last_removed: Instant | None = None
) -> PruneMark:
    """Return the mark after a pass: with `last_removed` if it left something that was settled later."""
    begun = (mark.next_at, mark.next_cut) if mark.is_under_way else (now, cuts.finished)
    if last_removed is None:
        return PruneMark(at=begun[0], cut=begun[1])
    return msgspec.structs.replace(
        mark, next_at=begun[0], next_cut=begun[1], reached=max(mark.reached, last_removed)
    )
