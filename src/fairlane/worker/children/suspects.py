"""Run suspects one at a time, in a child reserved for them (S39). Decides nothing about their fate.

A suspect that waits keeps its claim and its lease and takes no slot: nothing else has to wait for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from fairlane.worker.attempts.live_attempts import LiveAttempt
from fairlane.worker.children.pool import ChildPool


class SuspectLine:
    """The suspects of a worker, in the order in which they came. Used in the worker's loop only."""

    def __init__(self, pool: ChildPool, start: Callable[[LiveAttempt], bool]) -> None:
        """`start` says whether an attempt may start now, and counts it; if not, it has been handed back."""
        self._pool = pool
        self._start = start
        self._waiting: deque[LiveAttempt] = deque()
        pool.on_idle = self._next

    def __len__(self) -> int:
        return len(self._waiting)

    def enqueue(self, attempt: LiveAttempt) -> None:
        """Let a suspect wait for the reserved child."""
        self._waiting.append(attempt)
        self._next()

    def _next(self) -> None:
        while self._waiting and self._pool.is_free:
            attempt = self._waiting.popleft()
            if self._start(attempt):
                self._pool.run(attempt)

    def take_waiting(self) -> list[LiveAttempt]:
        """Take out all that wait: the worker drains, and they go back unstarted."""
        waiting = list(self._waiting)
        self._waiting.clear()
        return waiting
