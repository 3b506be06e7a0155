"""Tasks whose handlers run in children for a while although they do not ask for it (S39). Starts no child."""

from __future__ import annotations

from typing import Final

from fairlane.model.instants import SECOND, Micros
from fairlane.runtime.clock import Clock
from fairlane.worker import report

ALL_FOR: Final[Micros] = 60 * SECOND
"""How long every task is in quarantine after worker processes crashed: whose job it was is not known yet."""

TASK_FOR: Final[Micros] = 10 * 60 * SECOND
"""How long a task is after one of its jobs has ended its child; each further one begins this anew."""


class Quarantine:
    """Whose handlers run in children. Changed in the worker's loop, asked in any thread."""

    def __init__(self, worker: str, clock: Clock) -> None:
        self._worker = worker
        self._clock = clock
        self._all_until: Micros = 0
        self._until: dict[str, Micros] = {}

    def add_all(self) -> None:
        """Put every task into quarantine for a while."""
        now = self._clock.elapsed()
        if now >= self._all_until:
            report.all_quarantined(self._worker, ALL_FOR)
        self._all_until = now + ALL_FOR

    def add(self, task: str) -> None:
        """Put one task into quarantine: a job of it has ended its process."""
        now = self._clock.elapsed()
        if now >= self._until.get(task, 0):
            report.task_quarantined(self._worker, task, TASK_FOR)
        self._until[task] = now + TASK_FOR

    def has(self, task: str) -> bool:
        """Whether handlers of a task run in children now."""
        if not self._all_until and not self._until:
            return False
        now = self._clock.elapsed()
        return now < self._all_until or now < self._until.get(task, 0)
