"""The slots of a lane: which handlers have one, who waits for one, and who starts next (S47, S48)."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from fairlane.model.instants import Micros
from fairlane.worker.attempts.live_attempts import LiveAttempt

_Flow: TypeAlias = tuple[str, str]
"""The queue and tenant of a job."""


class Slots:
    """Starts attempts in the order in which they came.

    The last `headroom` free slots start only tenants of which nothing runs here, in that queue: what is held
    up by this delays nobody behind it.

    Changed by the worker's loop and, when a plain handler ends (`pass_on`), by its thread. Whoever changes
    it, or decides from several facts, holds the `lock`; the loop does from choosing an attempt until it has
    its slot. The methods do not take it themselves: a job needs several of them.
    """

    def __init__(self, number: int, headroom: int) -> None:
        """Start with all slots free."""
        self.lock = threading.RLock()
        self._number = number
        self._headroom = headroom
        self._waiting: deque[LiveAttempt] = deque()
        self._waiting_flows: Counter[_Flow] = Counter()
        self._idle_flows_waiting = 0  # flows that wait, and of which nothing runs
        self._running: dict[LiveAttempt, None] = {}  # ordered, unlike a set
        self._running_flows: Counter[_Flow] = Counter()

    @property
    def free(self) -> int:
        """How many slots hold no handler."""
        return self._number - len(self._running)

    @property
    def running(self) -> Sequence[LiveAttempt]:
        """The attempts whose handlers have slots."""
        return list(self._running)

    @property
    def waiting(self) -> int:
        """How many attempts wait for a slot."""
        return len(self._waiting)

    @property
    def oldest(self) -> LiveAttempt | None:
        """The attempt that has waited for longest."""
        with self.lock:
            return self._waiting[0] if self._waiting else None

    def enqueue(self, attempt: LiveAttempt) -> None:
        """Let an attempt wait for a slot."""
        self._waiting.append(attempt)
        if self._headroom:
            flow = _flow(attempt)
            self._waiting_flows[flow] += 1
            self._idle_flows_waiting += self._waiting_flows[flow] == 1 and not self._running_flows[flow]

    def next_to_start(self) -> LiveAttempt | None:
        """Take out the attempt that starts next; None if none may."""
        at = self._next()
        return None if at is None else self._take(at)

    def pass_on(
        self, ended: LiveAttempt, now: Micros, can_start: Callable[[LiveAttempt], bool]
    ) -> LiveAttempt | None:
        """Free the slot of a handler that has ended, and give it to the attempt that starts next.

        Return that attempt; None if none may start, or not this one. Called in the thread of the handler.
        """
        if not self.vacate(ended):
            return None  # it was abandoned before: its slot is another's by now
        at = self._next()
        if at is None or not can_start(self._waiting[at]):
            return None
        attempt = self._take(at)
        self.occupy(attempt, now)
        return attempt

    def take_waiting(self) -> list[LiveAttempt]:
        """Take out everything that waits."""
        waiting = list(self._waiting)
        self._waiting.clear()
        self._waiting_flows.clear()
        self._idle_flows_waiting = 0
        return waiting

    def leave(self, attempt: LiveAttempt) -> None:
        """Take out an attempt that waits, wherever it is."""
        if attempt in self._waiting:
            self._waiting.remove(attempt)
            self._left(attempt)

    def occupy(self, attempt: LiveAttempt, now: Micros) -> None:
        """Give an attempt a slot: its handler starts."""
        attempt.started_at = now
        self._running[attempt] = None
        if self._headroom:
            flow = _flow(attempt)
            self._running_flows[flow] += 1
            if self._running_flows[flow] == 1 and self._waiting_flows[flow]:
                self._idle_flows_waiting -= 1

    def vacate(self, attempt: LiveAttempt) -> bool:
        """Free the slot of an attempt; return whether it had one."""
        if attempt not in self._running:
            return False
        del self._running[attempt]
        if self._headroom:
            flow = _flow(attempt)
            self._running_flows[flow] -= 1
            if not self._running_flows[flow]:
                del self._running_flows[flow]
                self._idle_flows_waiting += self._waiting_flows[flow] > 0
        return True

    def _next(self) -> int | None:
        """Return the place of the attempt that starts next; None if none may."""
        free = self.free
        if free <= 0 or not self._waiting:
            return None
        if free > self._headroom:
            return 0
        if not self._idle_flows_waiting:
            return None
        return next(n for n, one in enumerate(self._waiting) if not self._running_flows[_flow(one)])

    def _take(self, at: int) -> LiveAttempt:
        attempt = self._waiting[at]
        del self._waiting[at]
        self._left(attempt)
        return attempt

    def _left(self, attempt: LiveAttempt) -> None:
        if self._headroom:
            flow = _flow(attempt)
            self._waiting_flows[flow] -= 1
            if not self._waiting_flows[flow]:
                del self._waiting_flows[flow]
                self._idle_flows_waiting -= not self._running_flows[flow]


def _flow(attempt: LiveAttempt) -> _Flow:
    job = attempt.claim.job
    return job.queue, job.tenant
