"""Jobs whose task this worker does not know: who else does, and since when nobody has (S33)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

from fairlane.app.declaration import Declaration, declare
from fairlane.model.instants import Instant, Micros
from fairlane.model.job import JobRecord
from fairlane.model.judge import Unknown
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.store.contract import Store
from fairlane.store.contract.registry import TasksRequest


def _nobody() -> NoReturn:
    raise NotImplementedError


STRANGER: Final[Declaration] = declare(_nobody, "fairlane.unknown", "default")
"""Stands for a task that is not known here; it is never run."""


class Strangers:
    """Finds out how long no live worker has known a task.

    Not longer than this worker has looked on: when all workers were stopped for a while, the first one to
    come back must not condemn the jobs of those that follow it.
    """

    def __init__(self, store: Callable[[], Store], clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._since = clock.elapsed()

    async def endings(self, jobs: list[JobRecord], now: Instant) -> list[Unknown]:
        """Say for each job how long its task has been unknown to all."""
        names = tuple({job.task for job in jobs})
        views = await self._store().registry.tasks(TasksRequest(scope=Scope.all(), names=names))
        seen: dict[str, Instant] = {}
        for view in views:
            for name in (view.card.name, *view.card.aliases):
                seen[name] = max(view.seen_at, seen.get(name, 0))
        looked_on: Micros = self._clock.elapsed() - self._since
        return [
            Unknown(max(0, min(looked_on, now - max(job.enqueued_at, seen.get(job.task, 0))))) for job in jobs
        ]
