"""Jobs whose task or version this worker does not know: who else does, and since when nobody has (S33)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn

from fairlane.app.declaration import Declaration, declare
from fairlane.model.instants import Instant, Micros
from fairlane.model.job import JobRecord
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.store.contract import Store
from fairlane.store.contract.registry import LIVE_WITHIN, TasksRequest


def _nobody() -> NoReturn:
    raise NotImplementedError


STRANGER: Final[Declaration] = declare(_nobody, "fairlane.unknown", "default")
"""Stands for a task that is not known here; it is never run."""


def is_unknown(job: JobRecord, declared: Declaration) -> bool:
    """Whether a job cannot be run here, because its task is not known, or only in older versions."""
    return declared is STRANGER or job.version > declared.version


class Sighting(NamedTuple):
    """How long no live worker could have run a job, and whether one can now."""

    unseen_for: Micros = 0
    is_live: bool = False


class Strangers:
    """Finds out how long no live worker has known a task in a job's version or a newer one.

    Not longer than this worker has looked on: when all workers were stopped for a while, the first one to
    come back must not condemn the jobs of those that follow it.
    """

    def __init__(self, store: Callable[[], Store], clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._since = clock.elapsed()
        self._told: set[tuple[str, int]] = set()

    def is_news(self, job: JobRecord) -> bool:
        """Whether this is the first job of its task and version: one line tells of all that follow."""
        key = (job.task, job.version)
        is_first = key not in self._told
        self._told.add(key)
        return is_first

    async def sightings(self, jobs: list[JobRecord], now: Instant) -> list[Sighting]:
        """Say for each job how long nobody could have run it, and whether somebody can now."""
        request = TasksRequest(scope=Scope.all(), names=tuple({job.task for job in jobs}), every_version=True)
        seen: dict[str, list[tuple[int, Instant]]] = {}
        for view in await self._store().registry.tasks(request):
            for name in (view.card.name, *view.card.aliases):
                seen.setdefault(name, []).append((view.card.version, view.seen_at))
        looked_on: Micros = self._clock.elapsed() - self._since
        found: list[Sighting] = []
        for job in jobs:
            able = max((at for version, at in seen.get(job.task, ()) if version >= job.version), default=0)
            unseen_for = max(0, min(looked_on, now - max(job.enqueued_at, able)))
            found.append(Sighting(unseen_for, is_live=now - able <= LIVE_WITHIN))
        return found
