"""Whose turn it is: start-time fair queueing over tenants' virtual clocks (S41). Integers only.

Each tenant of a queue has a virtual time `vt`. The tenant with the smallest goes first; being served
moves its `vt` on by its stride, so that a weight of 2 is served twice as often. `V`, the queue's own
virtual time, keeps an idle tenant from hoarding turns: on becoming active `vt = max(vt, V)`.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final

import msgspec

from fairlane.model.instants import SECOND, Micros

SCALE: Final = 2**20
LIGHTEST: Final = 0.01
HEAVIEST: Final = 1000.0

FIRST_ESTIMATE: Final[Micros] = SECOND
"""What a task is believed to last before its first attempt has ended."""


def stride(weight: float) -> int:
    """Turn a weight into the virtual time that one job, or one second, costs.

    >>> stride(1.0), stride(2.0), stride(1000)
    (1048576, 524288, 1049)
    """
    if not LIGHTEST <= weight <= HEAVIEST:
        message = f"a weight is a number from {LIGHTEST} to {HEAVIEST:.0f}, not {weight!r}"
        raise ValueError(message)
    return round(SCALE / weight)


def charge(stride: int, cost: Micros = SECOND) -> int:
    """Give the virtual time for a cost in worker time; a queue that counts jobs charges one second each.

    Halves go up, and nothing is free.

    >>> charge(stride(2.0)), charge(stride(1.0), 500_000), charge(1049, 1)
    (524288, 524288, 1)
    """
    return max(1, (stride * cost + SECOND // 2) // SECOND)


def correction(stride: int, charged: Micros, actual: Micros) -> int:
    """Give what to add to `vt` when a cost was charged and another turned out true; may be negative.

    >>> correction(stride(1.0), SECOND, 3 * SECOND) == 2 * SCALE
    True
    """
    return charge(stride, actual) - charge(stride, charged)


def activate(vt: int, virtual_now: int) -> int:
    """Let a tenant join: it keeps what it owes and gets nothing for the time it was away."""
    return max(vt, virtual_now)


def virtual_now(floor: int, ready: Sequence[int]) -> int:
    """Give V: the larger of the stored floor and the lowest `vt` among ready tenants.

    >>> virtual_now(5, []), virtual_now(5, [9, 7]), virtual_now(8, [9, 7])
    (5, 7, 8)
    """
    return max(floor, min(ready)) if ready else floor


def is_forgettable(vt: int, virtual_now: int) -> bool:
    """Whether a drained tenant's clock may be dropped: only once V has passed it.

    Dropping it earlier lets tenants that drain and return starve one with a backlog.
    """
    return vt <= virtual_now


def learn(estimate: Micros, actual: Micros) -> Micros:
    """Move a task's expected duration a tenth of the way to what was seen.

    >>> learn(1_000_000, 2_000_000)
    1100000
    """
    return estimate + (actual - estimate) // 10


class Contender(msgspec.Struct, frozen=True):
    """A ready tenant as a claim sees it: its clock, since when it is ready, and how many it could start."""

    vt: int
    ready_since: int
    stride: int
    room: int


def water_fill(contenders: Sequence[Contender], slots: int) -> list[int]:
    """Hand out slots one by one, each to the lowest clock; give the positions in the order served.

    Equal to serving the smallest of the tags `vt + j * stride`. Ties go to who became ready first.

    >>> a = Contender(vt=0, ready_since=1, stride=2, room=9)
    >>> b = Contender(vt=0, ready_since=2, stride=1, room=9)
    >>> water_fill([a, b], 6)
    [0, 1, 1, 0, 1, 1]
    """
    heap = [(one.vt, one.ready_since, position, one.room) for position, one in enumerate(contenders)]
    heapq.heapify(heap)
    served: list[int] = []
    while heap and len(served) < slots:
        vt, since, position, room = heap[0]
        if room <= 0:  # below it where a limit was lowered under what runs (S45)
            heapq.heappop(heap)
            continue
        served.append(position)
        heapq.heapreplace(heap, (vt + charge(contenders[position].stride), since, position, room - 1))
    return served
