"""Say which share of a queue's slots each tenant holds now, and which it is due (S93, S94). Chooses no job.

The order of claims is fair over time. This looks at one instant: who holds slots, and who waits for some.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

import msgspec

_SAME: Final = 1e-9
"""Shares are sums of fractions: a difference below this is none."""


class Claimant(msgspec.Struct, frozen=True):
    """A tenant with ready or running jobs in a queue: its weight, the slots it holds, the jobs that wait.

    `ready` counts what may be claimed as far as pauses allow. `room` is how many slots more its own limits
    allow; a tenant without limits has room for everything.
    """

    weight: float
    held: int
    ready: int
    room: float = inf


class Contention(msgspec.Struct, frozen=True):
    """Who slows whom: the positions of those above their share, and of those that wait for them."""

    over: tuple[int, ...]
    slowed: tuple[int, ...]


def fair_shares(claimants: Sequence[Claimant]) -> list[float]:
    """Divide the slots that are held by weight; what one cannot use goes to the others (S93).

    Weighted max-min: nobody gets more than it holds and could start, and whoever gets less than that has as
    much per weight as anybody. Limits of its own do not make a tenant's share smaller.

    >>> big, small = Claimant(1.0, held=6, ready=90), Claimant(1.0, held=1, ready=2)
    >>> fair_shares([big, small, Claimant(1.0, held=1, ready=0)])
    [4.0, 3.0, 1.0]
    >>> fair_shares([Claimant(3.0, held=2, ready=9), Claimant(1.0, held=2, ready=9)])
    [3.0, 1.0]
    """
    shares = [0.0] * len(claimants)
    left = float(sum(one.held for one in claimants))
    weights = sum(one.weight for one in claimants)
    # Whoever needs least for its weight is served first: what is left then is for heavier needs.
    by_need = sorted(range(len(claimants)), key=lambda at: _demand(claimants[at]) / claimants[at].weight)
    for at in by_need:
        one = claimants[at]
        shares[at] = min(float(_demand(one)), left * one.weight / weights)
        left -= shares[at]
        weights -= one.weight
    return shares


def guaranteed_shares(claimants: Sequence[Claimant]) -> list[float]:
    """Divide the slots that are held by weight alone: what each has even if all others want more.

    >>> guaranteed_shares([Claimant(3.0, held=2, ready=9), Claimant(1.0, held=2, ready=0)])
    [3.0, 1.0]
    """
    held = sum(one.held for one in claimants)
    weights = sum(one.weight for one in claimants)
    return [held * one.weight / weights for one in claimants]


def contention(claimants: Sequence[Claimant]) -> Contention:
    """Return who holds more than its share while others wait for less than theirs (S94).

    Slots are whole. Over is who would still have its share with one slot less. Slowed is who has ready jobs,
    room within its own limits, and holds no slot, or would not exceed its share with one more. If nobody is
    slowed, nobody is over: what others cannot use is free for all.

    >>> contention([Claimant(1.0, held=4, ready=90), Claimant(1.0, held=0, ready=2)])
    Contention(over=(0,), slowed=(1,))
    >>> contention([Claimant(1.0, held=4, ready=90), Claimant(1.0, held=0, ready=2, room=0)])
    Contention(over=(), slowed=())
    """
    fair = fair_shares(claimants)
    pairs = list(enumerate(zip(claimants, fair, strict=True)))
    over = tuple(at for at, (one, share) in pairs if one.held - 1 >= share - _SAME)
    slowed = tuple(at for at, (one, share) in pairs if _waits(one) and _is_below(one, share))
    return Contention(over, slowed) if over and slowed else Contention((), ())


def _demand(one: Claimant) -> int:
    return one.held + one.ready


def _waits(one: Claimant) -> bool:
    return one.ready > 0 and one.room > 0


def _is_below(one: Claimant, share: float) -> bool:
    return one.held == 0 or one.held + 1 <= share + _SAME
