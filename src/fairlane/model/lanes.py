"""Share a lane's slots between its queues (S47-S49). Lives in a worker's memory; knows no tenants.

The answer is an ordered list of (queue, most): a claim takes up to `most` from each entry in turn until
its total is full. First comes the plan, what each queue is due of the next starts; then, so that no slot
idles, each queue once more with all the room that its `max_slots` leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from typing import Final

from fairlane.model.fairness import stride
from fairlane.model.policy import WHOLE, Lane, Share

Wishes = list[tuple[str, int]]
Room = Mapping[str, int]

_WINDOW: Final = 100
"""A minimum share is promised of any so many starts."""


class LaneClock:
    """Decides which queues a lane asks next, from what its claims brought before.

    >>> clock = LaneClock(Lane("main", 7, {"high": 3, "default": 2, "low": 1, "bulk": 1}))
    >>> clock.wishes(7, {})[:4]
    [('high', 3), ('default', 2), ('low', 1), ('bulk', 1)]
    """

    def __init__(self, lane: Lane) -> None:
        """Start all queues of the lane at the same point."""
        self._shares = lane.shares()
        self._order = _Strict(self._shares) if lane.order == "strict" else _Weighted(self._shares)
        self._asked: Wishes = []
        self._narrow: dict[str, int] = {}

    def wishes(self, free: int, running: Mapping[str, int]) -> Wishes:
        """Say what to ask for with this many free slots, given how many of each queue run in the lane."""
        room = {
            name: free if most is None else min(free, max(0, most - running.get(name, 0)))
            for name, most in ((name, share.max_slots) for name, share in self._shares.items())
        }
        self._narrow = {name: most for name, most in room.items() if most < free}
        plan = self._order.plan(free, room)
        due = [(name, len(list(run))) for name, run in groupby(plan)]
        rest = [(name, room[name] - plan.count(name)) for name in self._order.listed()]
        self._asked = [(name, most) for name, most in [*due, *rest] if most > 0]
        return self._asked

    def started(self, starts: Mapping[str, int]) -> None:
        """Count what the claim brought. Fewer than asked is normal; a claim without starts says nothing."""
        came = +Counter(starts)
        if came:
            full = {name for name, most in self._narrow.items() if came[name] >= most}
            self._order.count(came, self._passed(came), full)

    def _passed(self, came: Counter[str]) -> set[str]:
        """Name the queues that were dry: the claim went on to a later entry before theirs was full.

        Entries after the last start say nothing: the claim may have ended there for other reasons, such as
        the lane's headroom.
        """
        left = came.copy()
        passed: set[str] = set()
        for name, most in self._asked:
            taken = min(most, left[name])
            left[name] -= taken
            if not left.total():
                break
            if taken < most:
                passed.add(name)
        return passed


class _Weighted:
    """Start-time fair over the queues: each start goes to the lowest clock, ties to the heavier queue."""

    def __init__(self, shares: Mapping[str, Share]) -> None:
        self._strides = {name: stride(share.weight) for name, share in shares.items()}
        self._clocks = dict.fromkeys(shares, 0)

    def listed(self) -> list[str]:
        """Give the queues in the order of their turns."""
        return sorted(self._clocks, key=lambda name: (self._clocks[name], self._strides[name]))

    def plan(self, free: int, room: Room) -> list[str]:
        """Lay out the next starts, those of a queue together."""
        if len(room) == 1:  # the usual lane, asked for each batch: nothing to share out
            return [name for name, most in room.items() for _ in range(min(free, most))]
        clocks = dict(self._clocks)
        due: Counter[str] = Counter()
        for _ in range(free):
            waiting = [name for name in clocks if due[name] < room[name]]
            if not waiting:
                break
            name = min(waiting, key=lambda one: (clocks[one], self._strides[one]))
            due[name] += 1
            clocks[name] += self._strides[name]
        return list(due.elements())

    def count(self, came: Counter[str], dry: set[str], full: set[str]) -> None:
        """Move the clocks. A queue that was dry, or had all the slots it may have, keeps no credit for it."""
        for name, count in came.items():
            self._clocks[name] += count * self._strides[name]
        idle = dry | full
        level = min(
            (clock for name, clock in self._clocks.items() if name not in idle),
            default=max(self._clocks.values()),
        )
        for name in idle:
            self._clocks[name] = max(self._clocks[name], level)


class _Strict:
    """The listed order, but for what minimum shares are owed.

    Of each start a minimum share earns its part, and a start that is owed to it costs it a whole. One alone
    is exact in any window; several are exact while none of them is dry, and else within a start for each
    that comes back.
    """

    def __init__(self, shares: Mapping[str, Share]) -> None:
        self._names = list(shares)
        self._earnings = {name: share.min_parts for name, share in shares.items() if share.min_parts}
        self._credits = dict.fromkeys(self._earnings, 0)
        self._dry: set[str] = set()
        self._probes: Counter[str] = Counter()
        self._owed: list[str | None] = []

    def listed(self) -> list[str]:
        """Give the queues in the order of the lane."""
        return self._names

    def plan(self, free: int, room: Room) -> list[str]:
        """Lay out the next starts in listed order, with what is owed in between.

        A queue that was dry is only probed, ahead of all, lest its turns be lost to others that are owed.
        """
        balance, self._probes, self._owed = dict(self._credits), Counter(), []
        for name, earning in self._earnings.items():
            if name in self._dry:
                self._probes[name] = min(room[name], max(0, (balance[name] + free * earning) // WHOLE))
        plan = list(self._probes.elements())
        left = {name: most - self._probes[name] for name, most in room.items()}
        for _ in range(free):
            able = [name for name in balance if left[name] and name not in self._dry]
            owed = self._most_urgent(able, balance)
            queue = owed or next((name for name in self._names if left[name]), None)
            if queue is None:
                break
            plan.append(queue)
            self._owed.append(owed)
            left[queue] -= 1
            for name, earning in self._earnings.items():
                balance[name] += earning - WHOLE * (name == owed)
        return plan

    def _most_urgent(self, queues: list[str], balance: Mapping[str, int]) -> str | None:
        """Name the queue whose minimum share must have the next start, if any.

        It must when otherwise, for some number of starts ahead, more would be due than there are. Looking
        only at the next one is too late for two that fall due together.
        """
        spare = WHOLE - sum(self._earnings[name] for name in queues)
        saved = sum(max(0, balance[name]) for name in queues)
        horizon = _WINDOW if spare <= 0 else min(_WINDOW, saved // spare)  # beyond it the rest suffices
        for ahead in range(1, horizon + 1):
            due = (balance[name] + ahead * self._earnings[name] for name in queues)
            if sum(max(0, credit // WHOLE) for credit in due) >= ahead:
                return min(queues, key=lambda name: -((balance[name] - WHOLE) // self._earnings[name]))
        return None

    def count(self, came: Counter[str], dry: set[str], full: set[str]) -> None:
        """Let minimum shares earn and pay. What nobody else wanted is free; who idles saves up one start."""
        self._dry = (self._dry - came.keys()) | dry
        total, probed = came.total(), self._probes & came
        owed = probed + Counter(self._owed[: total - probed.total()])
        for name, earning in self._earnings.items():
            credit = self._credits[name] + total * earning - min(owed[name], came[name]) * WHOLE
            self._credits[name] = min(WHOLE, credit) if name in self._dry | full else credit
