"""Retries by task: jobs that succeeded after a retry, mean attempts, commonest errors. Changes nothing.

Reads a bounded number of finished jobs, the most recently enqueued first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from fairlane.app.admin.failures import error_line
from fairlane.app.admin.paging import rows_read
from fairlane.app.client import Client
from fairlane.app.redaction import Redactor, secret_names
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import FindRequest

_STEP = 200
_MOST_ERRORS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRetries:
    """The finished jobs of one task: how many succeeded, how many of them after a failure, how many died.

    `mean_attempts` is over all of them. `errors` are the commonest errors of their stored attempts, most
    first, with secrets redacted.
    """

    task: str
    jobs: int
    succeeded: int
    after_retry: int
    dead: int
    mean_attempts: float
    errors: Mapping[str, int]

    @property
    def success_rate(self) -> float:
        """The part of the jobs that succeeded, from 0 to 1."""
        return self.succeeded / self.jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryReport:
    """The attempts of each task's jobs, tasks with the most retried or dead jobs first.

    `looked_at` is how many jobs were read. If not `is_complete`, there are more: older ones are left out.
    """

    tasks: Sequence[TaskRetries]
    looked_at: int
    is_complete: bool


async def report_retries(
    client: Client, scope: Scope, since: Instant, task: str | None, most: int
) -> RetryReport:
    """Read the finished jobs enqueued since then, at most `most` of them.

    Jobs of other tasks that the store had to read count, too.
    """
    states = frozenset({State.SUCCEEDED, State.DEAD})
    request: FindRequest | None = FindRequest(scope=scope, states=states, task=task, since=since)
    by_task: dict[str, _Attempts] = {}
    looked_at = 0
    while request is not None and looked_at < most:
        request = replace(request, limit=min(_STEP, most - looked_at))
        page = await client.store.jobs.find(request)
        for job in page.jobs:
            by_task.setdefault(job.task, _Attempts()).add(job)
        looked_at += rows_read(len(page.jobs), request.limit, page.cursor)
        request = None if page.cursor is None else replace(request, cursor=page.cursor)
    names = await secret_names(client, by_task, scope)
    found = [
        attempts.result(name, Redactor(reveals=False, names=names[name]))
        for name, attempts in by_task.items()
    ]
    ordered = sorted(found, key=lambda one: (-one.after_retry - one.dead, one.task))
    return RetryReport(tasks=tuple(ordered), looked_at=looked_at, is_complete=request is None)


class _Attempts:
    """Adds up the jobs of one task."""

    def __init__(self) -> None:
        self._jobs: Counter[State] = Counter()
        self._attempts = 0
        self._after_retry = 0
        self._errors: Counter[str] = Counter()

    def add(self, job: JobRecord) -> None:
        """Count one job."""
        self._jobs[job.state] += 1
        self._attempts += job.attempt
        self._after_retry += job.state is State.SUCCEEDED and job.failures > 0
        failed = [one for one in job.attempts if one.outcome in {"failed", "lost"}]
        self._errors.update(map(error_line, failed))

    def result(self, task: str, redactor: Redactor) -> TaskRetries:
        """Return the sums."""
        jobs = self._jobs.total()
        return TaskRetries(
            task=task,
            jobs=jobs,
            succeeded=self._jobs[State.SUCCEEDED],
            after_retry=self._after_retry,
            dead=self._jobs[State.DEAD],
            mean_attempts=self._attempts / jobs,
            errors=_redacted(self._errors.most_common(_MOST_ERRORS), redactor),
        )


def _redacted(errors: Iterable[tuple[str, int]], redactor: Redactor) -> dict[str, int]:
    shown: Counter[str] = Counter()
    for text, number in errors:
        shown[redactor.text(text) or ""] += number
    return dict(shown)
