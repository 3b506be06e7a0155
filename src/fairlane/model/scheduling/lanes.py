"""Share a lane's slots between its queues (S47-S49). Lives in a worker's memory; knows no tenants.

The result is an ordered list of (queue, limit): a claim takes up to `limit` jobs from each entry in order,
until its total is reached. First comes what each queue is due of the next starts. Then, so that no slot
stays idle, each queue once more with all that its `max_slots` allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from fairlane.model.policy.declared import WHOLE, Lane, Share
from fairlane.model.scheduling.fairness import stride

QueueRequests = list[tuple[str, int]]
FreeSlots = Mapping[str, int]

_WINDOW: Final = 100
"""A minimum share holds in any window of this many starts."""


class LaneClock:
    """Decides which queues a lane asks next, from the jobs that its claims returned before.

    >>> clock = LaneClock(Lane("main", 7, {"high": 3, "default": 2, "low": 1, "bulk": 1}))
    >>> clock.queue_requests(7, {})[:4]
    [('high', 3), ('default', 2), ('low', 1), ('bulk', 1)]
    """

    def __init__(self, lane: Lane) -> None:
        """Start the clocks of all queues at zero."""
        self._shares = lane.shares()
        self._order = _Strict(self._shares) if lane.order == "strict" else _Weighted(self._shares)
        self._asked: QueueRequests = []
        self._narrow: dict[str, int] = {}

    def queue_requests(self, free: int, running: Mapping[str, int], ahead: int = 0) -> QueueRequests:
        """Return what to ask for with this many free slots, given the claimed jobs of each queue.

        What is claimed `ahead` of a free slot (S68) is shared as slots are; of a strict lane it is all of the
        first queue, because what waits there may not delay a more urgent job.
        """
        is_strict = isinstance(self._order, _Strict)
        wanted = free if is_strict else free + ahead
        left = {
            name: None if share.max_slots is None else max(0, share.max_slots - running.get(name, 0))
            for name, share in self._shares.items()
        }
        free_slots = {name: wanted if limit is None else min(wanted, limit) for name, limit in left.items()}
        self._narrow = {name: limit for name, limit in free_slots.items() if limit < wanted}
        if len(left) == 1:  # the usual lane, on the hot path: nothing to share
            (name, limit), wanted = next(iter(left.items())), free + ahead
            self._asked = [(name, wanted if limit is None else min(wanted, limit))]
            return self._asked
        plan = self._order.plan(wanted, free_slots)
        due = [(name, len(list(run))) for name, run in groupby(plan)]
        rest = [(name, free_slots[name] - plan.count(name)) for name in self._order.listed()]
        first = self._order.listed()[0]
        beyond = [(first, ahead)] if is_strict and left[first] is None else []
        self._asked = [(name, limit) for name, limit in [*due, *beyond, *rest] if limit > 0]
        return self._asked

    def start_order(self, queues: Sequence[str]) -> list[int]:
        """Return in which order claimed jobs start, given the queue of each, before they are counted.

        A claim returns the jobs of one queue after those of another. If they cannot all start at once, the
        queues take turns, as they would have with a claim for each slot.

        >>> clock = LaneClock(Lane("main", 2, {"mail": 2, "report": 1}))
        >>> clock.start_order(["mail", "mail", "mail", "mail", "report", "report"])
        [0, 4, 1, 2, 5, 3]
        """
        return self._order.start_order(queues)

    def started(self, starts: Mapping[str, int]) -> None:
        """Count the jobs that a claim returned. A claim without jobs tells nothing."""
        came = +Counter(starts)
        if came:
            full = {name for name, limit in self._narrow.items() if came[name] >= limit}
            self._order.count(came, self._passed(came), full)

    def _passed(self, came: Counter[str]) -> set[str]:
        """Return the queues that were empty: the claim went on to a later entry before theirs was full.

        Entries after the last start tell nothing: the claim may have ended for other reasons, such as the
        lane's headroom.
        """
        left = came.copy()
        passed: set[str] = set()
        for name, limit in self._asked:
            taken = min(limit, left[name])
            left[name] -= taken
            if not left.total():
                break
            if taken < limit:
                passed.add(name)
        return passed


class _Weighted:
    """Start-time fair queueing over the queues: lowest clock first, ties to the heavier queue."""

    def __init__(self, shares: Mapping[str, Share]) -> None:
        self._strides = {name: stride(share.weight) for name, share in shares.items()}
        self._clocks = dict.fromkeys(shares, 0)

    def listed(self) -> list[str]:
        """Return the queues, lowest clock first."""
        return sorted(self._clocks, key=lambda name: (self._clocks[name], self._strides[name]))

    def plan(self, free: int, free_slots: FreeSlots) -> list[str]:
        """Return the queues of the next starts, those of one queue together."""
        clocks = dict(self._clocks)
        due: Counter[str] = Counter()
        for _ in range(free):
            waiting = [name for name in clocks if due[name] < free_slots[name]]
            if not waiting:
                break
            name = min(waiting, key=lambda one: (clocks[one], self._strides[one]))
            due[name] += 1
            clocks[name] += self._strides[name]
        return list(due.elements())

    def start_order(self, queues: Sequence[str]) -> list[int]:
        """Return the order of starts: lowest clock first, ties to the heavier queue."""
        clocks, places = dict(self._clocks), list[tuple[int, int, int]]()
        for at, name in enumerate(queues):
            places.append((clocks[name], self._strides[name], at))
            clocks[name] += self._strides[name]
        return [at for _, _, at in sorted(places)]

    def count(self, came: Counter[str], dry: set[str], full: set[str]) -> None:
        """Advance the clocks. A queue that was empty, or had all its `max_slots`, gets no credit for it."""
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
    """The listed order, except for starts that minimum shares are owed.

    Each start adds to the credit of every minimum share, and a start that is owed to one costs it a whole. A
    single minimum share is exact in any window. Several are exact while none of their queues is empty, else
    within one start for each queue that gets jobs again.
    """

    def __init__(self, shares: Mapping[str, Share]) -> None:
        self._names = list(shares)
        self._earnings = {name: share.min_parts for name, share in shares.items() if share.min_parts}
        self._credits = dict.fromkeys(self._earnings, 0)
        self._dry: set[str] = set()
        self._probes: Counter[str] = Counter()
        self._owed: list[str | None] = []

    def listed(self) -> list[str]:
        """Return the queues in the declared order."""
        return self._names

    def plan(self, free: int, free_slots: FreeSlots) -> list[str]:
        """Return the queues of the next starts in the listed order, with owed starts in between.

        A queue that was empty is only probed, before all others, so that its owed starts are not lost.
        """
        balance, self._probes, self._owed = dict(self._credits), Counter(), []
        for name, earning in self._earnings.items():
            if name in self._dry:
                self._probes[name] = min(free_slots[name], max(0, (balance[name] + free * earning) // WHOLE))
        plan = list(self._probes.elements())
        left = {name: limit - self._probes[name] for name, limit in free_slots.items()}
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
        """Return the queue whose minimum share must get the next start, if any.

        It must if otherwise, within some number of starts, more starts would be owed than there are. Looking
        at the next start alone is too late for two shares that are owed together.
        """
        spare = WHOLE - sum(self._earnings[name] for name in queues)
        saved = sum(max(0, balance[name]) for name in queues)
        horizon = _WINDOW if spare <= 0 else min(_WINDOW, saved // spare)  # beyond it the rest suffices
        for ahead in range(1, horizon + 1):
            due = (balance[name] + ahead * self._earnings[name] for name in queues)
            if sum(max(0, credit // WHOLE) for credit in due) >= ahead:
                return min(queues, key=lambda name: -((balance[name] - WHOLE) // self._earnings[name]))
        return None

    def start_order(self, queues: Sequence[str]) -> list[int]:
        """Return the order of starts: as claimed."""
        return list(range(len(queues)))

    def count(self, came: Counter[str], dry: set[str], full: set[str]) -> None:
        """Update the credits. Starts that nobody else wanted are free; an idle share saves up one start."""
        self._dry = (self._dry - came.keys()) | dry
        total, probed = came.total(), self._probes & came
        owed = probed + Counter(self._owed[: total - probed.total()])
        for name, earning in self._earnings.items():
            credit = self._credits[name] + total * earning - min(owed[name], came[name]) * WHOLE
            self._credits[name] = min(WHOLE, credit) if name in self._dry | full else credit
