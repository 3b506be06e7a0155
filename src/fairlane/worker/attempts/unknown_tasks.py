"""Find out who else knows a task or version that this worker does not, and how long nobody has (S33)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn

from fairlane.app.task.declaration import Declaration, declare
from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.instants import Instant, Micros
from fairlane.model.job import JobRecord
from fairlane.model.retry.decision import PermanentFailure
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.store.contract import Store
from fairlane.store.contract.registry import LIVE_WITHIN, TasksRequest


def _never_run() -> NoReturn:
    raise NotImplementedError


UNKNOWN_TASK: Final[Declaration] = declare(_never_run, "fairlane.unknown", "default")
"""Stands for a task that is not known here. It never runs."""


def is_unknown(job: JobRecord, declared: Declaration) -> bool:
    """Whether a job cannot run here: its task is not known, or only in older versions."""
    return declared is UNKNOWN_TASK or job.version > declared.version


def unknown_failure(job: JobRecord) -> PermanentFailure:
    """Return what makes a job dead whose task is not known here, where `unknown_task` is `fail`."""
    message = f'this worker does not know task {job.task}, and its unknown_task is "fail"'
    return PermanentFailure(Failure(ErrorClass.UNKNOWN_TASK, "UnknownTask", message))


class TaskAvailability(NamedTuple):
    """How long no live worker could have run a job, and whether one can now."""

    unseen_for: Micros = 0
    is_live: bool = False


class UnknownTasks:
    """Finds out how long no live worker has known a task in a job's version or a newer one.

    Never longer than this worker has been running: after all workers were stopped for a while, the first one
    to come back must not make the jobs of the others dead.
    """

    def __init__(self, store: Callable[[], Store], clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._since = clock.elapsed()
        self._seen: set[tuple[str, int]] = set()

    def is_first_of_kind(self, job: JobRecord) -> bool:
        """Whether this is the first job of its task and version: only that one is logged loudly."""
        key = (job.task, job.version)
        is_first = key not in self._seen
        self._seen.add(key)
        return is_first

    async def availability(self, jobs: list[JobRecord], now: Instant) -> list[TaskAvailability]:
        """Return for each job how long nobody could have run it, and whether somebody can now."""
        request = TasksRequest(scope=Scope.all(), names=tuple({job.task for job in jobs}), every_version=True)
        seen: dict[str, list[tuple[int, Instant]]] = {}
        for view in await self._store().registry.tasks(request):
            for name in (view.record.name, *view.record.aliases):
                seen.setdefault(name, []).append((view.record.version, view.seen_at))
        uptime: Micros = self._clock.elapsed() - self._since
        found: list[TaskAvailability] = []
        for job in jobs:
            able = max((at for version, at in seen.get(job.task, ()) if version >= job.version), default=0)
            unseen_for = max(0, min(uptime, now - max(job.enqueued_at, able)))
            found.append(TaskAvailability(unseen_for, is_live=now - able <= LIVE_WITHIN))
        return found
