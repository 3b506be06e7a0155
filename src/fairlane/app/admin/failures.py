"""Failed attempts by task since some time, and jobs that have been running for too long. Reads only.

Reads dead letters by the time of their death, and unfinished jobs. Jobs that succeeded after a retry are not
looked at: there may be millions of them, and their failures need nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from msgspec.structs import replace

from fairlane.app.admin.paging import rows_read
from fairlane.model.instants import Instant, to_datetime
from fairlane.model.job import AttemptRecord, JobRecord
from fairlane.model.lifecycle.states import HOT
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.dead import DeadRequest
from fairlane.store.contract.jobs import FindRequest

MAX_LOOKED_AT: Final = 10_000
"""How many dead letters, and how many unfinished jobs, are read unless the caller says otherwise."""

_STEP: Final = 200
_WIDTH: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailures:
    """What failed of one task: attempts, jobs, the dead among these, the newest time, the commonest error."""

    task: str
    failures: int
    jobs: int
    dead: int
    last_at: datetime
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureReport:
    """The failures of each task, most failures first.

    `looked_at` is how many jobs were read. If not `is_complete`, there are more: the numbers may be too low.
    """

    tasks: Sequence[TaskFailures]
    looked_at: int
    is_complete: bool


async def report_failures(
    store: Store, scope: Scope, since: Instant, task: str | None, most: int, *, queue: str | None = None
) -> FailureReport:
    """Read the dead letters since then and the unfinished jobs, at most `most` of each.

    What the store had to read of other tasks and queues counts, too: a rare task costs no more than others.
    """
    report = _Report(since)
    dead = DeadRequest(scope=scope, task=task, queue=queue, since=since, limit=min(_STEP, most))
    hot = FindRequest(scope=scope, task=task, queue=queue, states=frozenset(HOT), limit=min(_STEP, most))
    for pages in (_dead_pages(store, dead), _job_pages(store, hot)):
        read = 0
        async for jobs, rows, is_last in pages:
            for job in jobs[: most - read]:
                report.add(job)
            read += rows
            if read >= most and not (is_last and read == most):
                report.is_complete = False
                break
    return report.result()


_Pages: TypeAlias = AsyncIterator[tuple[list[JobRecord], int, bool]]
"""Jobs, how many rows were read for them, and whether these are the last."""


async def _dead_pages(store: Store, request: DeadRequest) -> _Pages:
    while True:
        page = await store.dead.find(request)
        rows = rows_read(len(page.letters), request.limit, page.cursor)
        yield [letter.job for letter in page.letters], rows, page.cursor is None
        if page.cursor is None:
            return
        request = replace(request, cursor=page.cursor)


async def _job_pages(store: Store, request: FindRequest) -> _Pages:
    while True:
        page = await store.jobs.find(request)
        rows = rows_read(len(page.jobs), request.limit, page.cursor)
        yield list(page.jobs), rows, page.cursor is None
        if page.cursor is None:
            return
        request = replace(request, cursor=page.cursor)


class _Report:
    """Adds up failed attempts by task."""

    def __init__(self, since: Instant) -> None:
        self.is_complete = True
        self._since = since
        self._looked_at = 0
        self._jobs: Counter[str] = Counter()
        self._dead: Counter[str] = Counter()
        self._errors: dict[str, Counter[str]] = {}
        self._last: dict[str, Instant] = {}

    def add(self, job: JobRecord) -> None:
        """Count the attempts of a job that failed since then."""
        self._looked_at += 1
        failed = [one for one in job.attempts if self._has_failed(one)]
        if not failed:
            return
        self._jobs[job.task] += 1
        self._dead[job.task] += job.settled_at is not None
        self._errors.setdefault(job.task, Counter()).update(map(error_line, failed))
        self._last[job.task] = max(self._last.get(job.task, 0), *(one.ended_at for one in failed))

    def _has_failed(self, attempt: AttemptRecord) -> bool:
        return attempt.outcome in {"failed", "lost"} and attempt.ended_at >= self._since

    def result(self) -> FailureReport:
        """Return the tasks, most failures first."""
        tasks = [
            TaskFailures(
                task=task,
                failures=errors.total(),
                jobs=self._jobs[task],
                dead=self._dead[task],
                last_at=to_datetime(self._last[task]),
                error=errors.most_common(1)[0][0],
            )
            for task, errors in self._errors.items()
        ]
        ordered = sorted(tasks, key=lambda one: (-one.failures, one.task))
        return FailureReport(tasks=tuple(ordered), looked_at=self._looked_at, is_complete=self.is_complete)


def error_line(attempt: AttemptRecord) -> str:
    """Return the error of a failed attempt on one line, shortened; its outcome if it has none."""
    failure = attempt.failure
    if failure is None:
        return attempt.outcome
    first_line = failure.message.partition("\n")[0]
    return f"{failure.error_type}: {first_line}"[:_WIDTH] if first_line else failure.error_type
