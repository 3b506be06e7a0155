"""Refuse to start a worker that could not read older jobs which may still be in the store (S33).

A worker with version 2 of a task and no upcast from version 1 would make every job of version 1 dead.
"""

from __future__ import annotations

from logging import getLogger
from typing import Final

from fairlane.app.fairlane import Fairlane
from fairlane.app.task.declaration import Declaration
from fairlane.model.errors import ConfigError
from fairlane.model.instants import HOUR, SECOND
from fairlane.model.lifecycle.states import HOT
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import FindRequest
from fairlane.store.contract.registry import TasksRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE, Request

MAX_PAGES: Final = 100
"""Pages of jobs that a start reads for one name: a million jobs. A task with all its upcasts reads none."""

_log: Final = getLogger("fairlane.worker")


async def refuse_unreadable_versions(app: Fairlane, store: Store) -> None:
    """Raise `ConfigError` for a missing upcast that something needs; name the task and the version.

    A version is needed if a worker registered it within the last hour, because its application may still
    enqueue, and while a job of it is unfinished. A gap between two upcasts is refused in any case.
    """
    for task in app.client.registry:
        try:
            task.upcasters.check(task.version)
        except ValueError as error:
            message = f"{str(error).partition(', but ')[2]}; declare it with @task.upcast"
            raise ConfigError(
                f"it is version {task.version}, but {message}", key=f"task {task.name}"
            ) from None
        if task.upcasters.oldest(task.version) > 1:
            await _refuse_registered(task, store)
            await _refuse_unfinished(task, store)


async def _refuse_registered(task: Declaration, store: Store) -> None:
    """Look for workers that know, or recently knew, a version that could not be read."""
    oldest, everybody = task.upcasters.oldest(task.version), Scope.all()
    now = (await store.registry.status(Request(scope=everybody))).now
    request = TasksRequest(scope=everybody, names=(task.name, *task.aliases), every_version=True)
    for view in await store.registry.tasks(request):
        silence = now - view.seen_at
        if view.record.version < oldest and silence < HOUR:
            ago = "lives" if silence < SECOND else f"was seen {silence // SECOND} s ago"
            raise _refusal(
                task, view.record.version, f"a worker that knows version {view.record.version} {ago}"
            )


async def _refuse_unfinished(task: Declaration, store: Store) -> None:
    """Look for an unfinished job that could not be read."""
    oldest = task.upcasters.oldest(task.version)
    for name in (task.name, *task.aliases):
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            request = FindRequest(
                scope=Scope.all(), states=HOT, task=name, limit=MAX_PAGE_SIZE, cursor=cursor
            )
            page = await store.jobs.find(request)
            for job in page.jobs:
                if job.version < oldest:
                    raise _refusal(task, job.version, f"job {job.id} of version {job.version} is unfinished")
            cursor = page.cursor
            if cursor is None:
                break
        else:
            text = "task %s has no upcast from version %d, and there are too many jobs to look for older ones"
            about = {"event": "versions_unchecked", "task": task.name}
            _log.warning(text, task.name, oldest - 1, extra=about)


def _refusal(task: Declaration, version: int, why: str) -> ConfigError:
    return ConfigError(
        f"it is version {task.version}, has no upcast from version {version}, and {why}: its jobs would be "
        f"dead. Declare @{task.handler.func.__name__}.upcast({version}); one that raises says they may be",
        key=f"task {task.name}",
    )
