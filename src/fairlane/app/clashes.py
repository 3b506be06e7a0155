"""Find tasks that two applications on one store both call their own, by what workers publish. Asks nobody.

Old and new code of one application live side by side during a deploy: they have one name, and a changed task
has a new version. What differs beyond that is another application, or a change that was not given a version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from fairlane.store.contract.registry import TaskCard, WorkerCard

_LABEL: Final = "app="


class Clash(msgspec.Struct, frozen=True):
    """A task of one worker that another has, too, and not the same. If `takes_jobs`, each runs the other's.

    >>> Clash("mail", "shop", "billing", "module shop.jobs, module billing.jobs", True, "w2").text
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
        """Say who has it, and what is different."""
        if self.application == self.other:
            return (
                f"task {self.task} is declared twice by application {self.application!r} ({self.difference})"
            )
        who = f"by application {self.application!r} and by {self.other!r}"
        return f"task {self.task} is declared {who} ({self.difference})"


def application_of(card: WorkerCard) -> str:
    """Name the application that a worker runs; empty if it does not say."""
    names = (label.removeprefix(_LABEL) for label in card.labels if label.startswith(_LABEL))
    return next(names, "")


def clashes(mine: WorkerCard, others: Iterable[WorkerCard]) -> Iterator[Clash]:
    """Compare a worker's tasks with those of others; each pair of a task and a worker at most once.

    Another application, by name and by module, is served by neither's handlers: if both serve a queue, each
    `takes_jobs` of the other. Anything else may be one application before and after a change.
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
                yield Clash(task.name, ours, named, difference, takes_jobs, other.id)


def _difference(mine: TaskCard, other: TaskCard, *, is_one: bool) -> str | None:
    if _has_moved(mine, other):
        return f"module {mine.module}, module {other.module}"
    if mine.schema != other.schema and (mine.version == other.version or not is_one):
        return f"other arguments in version {mine.version}" if is_one else "other arguments"
    return None


def _has_moved(mine: TaskCard, other: TaskCard) -> bool:
    return bool(mine.module and other.module) and mine.module != other.module
