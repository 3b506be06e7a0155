"""Fair order of tenants: start-time fair queueing over virtual clocks (S41). Integers only.

Each tenant of a queue has a virtual time `vt`, and the smallest goes first. Each job served adds the tenant's
stride to its `vt`, so that a weight of 2 is served twice as often. `V`, the queue's own virtual time, keeps
an idle tenant from saving up: when it becomes active, `vt = max(vt, V)`.
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
"""The assumed duration of a task before its first attempt has ended."""


def stride(weight: float) -> int:
    """Return the virtual time that one job, or one second, costs a tenant of this weight.

    >>> stride(1.0), stride(2.0), stride(1000)
    (1048576, 524288, 1049)
    """
    if not LIGHTEST <= weight <= HEAVIEST:
        message = f"a weight is a number from {LIGHTEST} to {HEAVIEST:.0f}, not {weight!r}"
        raise ValueError(message)
    return round(SCALE / weight)


def charge(stride: int, cost: Micros = SECOND) -> int:
    """Return the virtual time for a cost in worker time; a queue that counts jobs charges a second per job.

    Rounds halves up; the least charge is 1.

    >>> charge(stride(2.0)), charge(stride(1.0), 500_000), charge(1049, 1)
    (524288, 524288, 1)
    """
    return max(1, (stride * cost + SECOND // 2) // SECOND)


def correction(stride: int, charged: Micros, actual: Micros) -> int:
    """Return what to add to `vt` once the actual cost is known; it may be negative.

    >>> correction(stride(1.0), SECOND, 3 * SECOND) == 2 * SCALE
    True
    """
    return charge(stride, actual) - charge(stride, charged)


def refund(vt: int, stride: int, charged: Micros = SECOND) -> int:
    """Return the `vt` of a tenant whose job comes back unstarted (S68). A changed weight makes it no credit.

    >>> refund(charge(7), 7), refund(5, 7)
    (0, 0)
    """
    return max(0, vt - charge(stride, charged))


def activate(vt: int, virtual_now: int) -> int:
    """Return the `vt` of a tenant that becomes active: it keeps its debt and gets no credit for idle time."""
    return max(vt, virtual_now)


def virtual_now(floor: int, ready: Sequence[int]) -> int:
    """Return V: the larger of the stored floor and the lowest `vt` among ready tenants.

    >>> virtual_now(5, []), virtual_now(5, [9, 7]), virtual_now(8, [9, 7])
    (5, 7, 8)
    """
    return max(floor, min(ready)) if ready else floor


def is_forgettable(vt: int, virtual_now: int) -> bool:
    """Whether the clock of a tenant without jobs may be dropped: once V has passed it.

    If it were dropped earlier, tenants that drain and return could starve one with a backlog.
    """
    return vt <= virtual_now


def learn(estimate: Micros, actual: Micros) -> Micros:
    """Return a task's expected duration, moved a tenth of the way to the last one.

    >>> learn(1_000_000, 2_000_000)
    1100000
    """
    return estimate + (actual - estimate) // 10


class Contender(msgspec.Struct, frozen=True):
    """A ready tenant in a claim: its clock, since when it is ready, and how many jobs it may start."""

    vt: int
    ready_since: int
    stride: int
    free_slots: int


def water_fill(contenders: Sequence[Contender], slots: int) -> list[int]:
    """Hand out slots one by one, each to the lowest clock; return the positions in the order served.

    Equal to serving the smallest of the tags `vt + j * stride`. Ties go to the tenant ready first.

    >>> a = Contender(vt=0, ready_since=1, stride=2, free_slots=9)
    >>> b = Contender(vt=0, ready_since=2, stride=1, free_slots=9)
    >>> water_fill([a, b], 6)
    [0, 1, 1, 0, 1, 1]
    """
    heap = [(one.vt, one.ready_since, position, one.free_slots) for position, one in enumerate(contenders)]
    heapq.heapify(heap)
    served: list[int] = []
    while heap and len(served) < slots:
        vt, since, position, free_slots = heap[0]
        if free_slots <= 0:  # negative if a limit was lowered below what runs (S45)
            heapq.heappop(heap)
            continue
        served.append(position)
        heapq.heapreplace(heap, (vt + charge(contenders[position].stride), since, position, free_slots - 1))
    return served
