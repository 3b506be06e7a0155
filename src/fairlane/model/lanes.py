"""Share a lane's slots between its queues (S47-S49). Lives in a worker's memory; knows no tenants.

The answer is an ordered list of (queue, most): a claim takes up to `most` from each entry in turn until
its total is full. First comes what each queue is due, then, so that no slot idles, each queue once more
with all the room that its `max_slots` leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlane.model.fairness import SCALE
from fairlane.model.policy import Lane

Wishes = list[tuple[str, int]]

_CREDIT: Final = 10_000
"""A minimum share is kept in ten-thousandths: integers give exactly that share of any 100 starts."""


class LaneClock:
    """Decides which queues a lane asks next, from what its claims brought before.

    >>> clock = LaneClock(Lane("main", 7, {"high": 3, "default": 2, "low": 1, "bulk": 1}))
    >>> clock.wishes(7, {})[:4]
    [('high', 3), ('default', 2), ('low', 1), ('bulk', 1)]
    """

    def __init__(self, lane: Lane) -> None:
        """Start all queues of the lane at the same point."""
        self._shares = lane.shares()
        self._is_strict = lane.order == "strict"
        self._strides = {name: max(1, round(SCALE / share.weight)) for name, share in self._shares.items()}
        self._clocks = dict.fromkeys(self._shares, 0)
        self._earning = {name: round(share.min_share * _CREDIT) for name, share in self._shares.items()}
        self._credits = dict.fromkeys(self._shares, 0)
        self._due: dict[str, int] = {}

    def wishes(self, free: int, running: Mapping[str, int]) -> Wishes:
        """Say what to ask for with this many free slots, given how many of each queue run in the lane."""
        room = {
            name: free if share.max_slots is None else min(free, max(0, share.max_slots - running.get(name, 0)))
            for name, share in self._shares.items()
        }
        self._due = self._owed(free, room) if self._is_strict else self._weighted(free, room)
        rest = [(name, room[name] - self._due.get(name, 0)) for name in self._in_order()]
        return [(name, most) for name, most in [*self._due.items(), *rest] if most > 0]

    def started(self, starts: Mapping[str, int]) -> None:
        """Count what the claim brought. A queue that had less than it was due was dry and keeps no credit."""
        total = sum(starts.values())
        dry = {name for name, due in self._due.items() if starts.get(name, 0) < due}
        for name in self._shares:
            count = starts.get(name, 0)
            self._clocks[name] += count * self._strides[name]
            earned = self._credits[name] + total * self._earning[name] - count * _CREDIT
            self._credits[name] = 0 if name in dry else max(0, earned)
        busy = [clock for name, clock in self._clocks.items() if name not in dry]
        level = min(busy, default=max(self._clocks.values()))
        for name in dry:
            self._clocks[name] = max(self._clocks[name], level)

    def _in_order(self) -> list[str]:
        if self._is_strict:
            return list(self._shares)
        return sorted(self._shares, key=lambda name: (self._clocks[name], self._strides[name]))

    def _weighted(self, free: int, room: Mapping[str, int]) -> dict[str, int]:
        clocks = dict(self._clocks)
        due: dict[str, int] = {}
        for _ in range(free):  # the lowest clock first, ties to the heavier queue
            open_queues = [name for name in clocks if due.get(name, 0) < room[name]]
            if not open_queues:
                break
            name = min(open_queues, key=lambda one: (clocks[one], self._strides[one]))
            due[name] = due.get(name, 0) + 1
            clocks[name] += self._strides[name]
        return due

    def _owed(self, free: int, room: Mapping[str, int]) -> dict[str, int]:
        """Count the starts among the next `free` that minimum shares are owed."""
        owed = {
            name: min(room[name], (self._credits[name] + free * earning) // _CREDIT)
            for name, earning in self._earning.items()
        }
        return {name: count for name, count in owed.items() if count}
