"""Find tasks of the same name that two workers on one store declare differently.

During a deploy, old and new code of one application run side by side: same application name, and a changed
task has a new version. Any other difference means two applications, or a change without a new version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from fairlane.store.contract.registry import TaskRecord, WorkerRecord

_LABEL: Final = "app="


class TaskConflict(msgspec.Struct, frozen=True):
    """A task that another worker declares differently. `takes_jobs`: each worker claims the other's jobs.

    >>> TaskConflict("mail", "shop", "billing", "module shop.jobs, module billing.jobs", True, "w2").text
    "task mail is declared by application 'shop' and by 'billing' (module shop.jobs, module billing.jobs)"
    """

    task: str
    application: str
    other: str
    difference: str
    takes_jobs: bool
    worker: str

    @property
    def text(self) -> str:
        """The applications that declare it, and the difference."""
        if self.application == self.other:
            return (
                f"task {self.task} is declared twice by application {self.application!r} ({self.difference})"
            )
        who = f"by application {self.application!r} and by {self.other!r}"
        return f"task {self.task} is declared {who} ({self.difference})"


def application_of(record: WorkerRecord) -> str:
    """Return the name of a worker's application; empty if unknown."""
    names = (label.removeprefix(_LABEL) for label in record.labels if label.startswith(_LABEL))
    return next(names, "")


def task_conflicts(mine: WorkerRecord, others: Iterable[WorkerRecord]) -> Iterator[TaskConflict]:
    """Yield the tasks that a worker and another one declare differently, at most once per pair.

    Two tasks belong to different applications if application name and module differ. If such workers serve
    the same queue, each `takes_jobs` of the other. Anything else may be one application before and after a
    deploy.
    """
    for other in others:
        theirs = {task.name: task for task in other.tasks}
        ours, named = application_of(mine), application_of(other)
        for task in mine.tasks:
            found = theirs.get(task.name)
            difference = None if found is None else _difference(task, found, is_one=ours == named)
            if found is not None and difference is not None:
                is_another = ours != named and _has_moved(task, found)
                takes_jobs = is_another and not set(mine.queues).isdisjoint(other.queues)
                yield TaskConflict(task.name, ours, named, difference, takes_jobs, other.id)


def _difference(mine: TaskRecord, other: TaskRecord, *, is_one: bool) -> str | None:
    if _has_moved(mine, other):
        return f"module {mine.module}, module {other.module}"
    if mine.schema != other.schema and (mine.version == other.version or not is_one):
        return f"other arguments in version {mine.version}" if is_one else "other arguments"
    return None


def _has_moved(mine: TaskRecord, other: TaskRecord) -> bool:
    return bool(mine.module and other.module) and mine.module != other.module
