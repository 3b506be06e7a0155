"""Counts of jobs, now: by queue and state, by task what fails and what is retried. Keeps no number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Final

from msgspec import Meta

from fairlane.app.admin.queue_stats import QueueStats, stats_of
from fairlane.app.admin.retries import report_retries
from fairlane.app.admin.validation import begin_of, name_of, scope_of
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.request import MAX_ROWS_READ
from fairlane.web.api.bodies import Moment, PlainFilters
from fairlane.web.api.job_replies import Reply, redactors
from fairlane.web.call import WebCall
from fairlane.web.declare import Body, EndpointGroup

STATISTICS: Final = EndpointGroup("statistics", "Counts of jobs, now: by queue, by state, by task.")

Within = Annotated[float, Meta(gt=0, le=366 * 86_400, description="How far back, in seconds.")]
Most = Annotated[int, Meta(ge=1, le=MAX_ROWS_READ, description="How many jobs to look at, at most.")]


class QueueStatisticsQuery(Body, frozen=True, kw_only=True):
    """Which queue, and whose jobs; without them all."""

    queue: str | None = None
    tenant: str | None = None


class QueueStatisticsReply(Reply, frozen=True, kw_only=True):
    """The jobs of a queue now. By state the numbers are exact.

    `retrying` are those delayed jobs that wait for their next attempt, `because` all delayed ones by what
    they wait for. These, and the oldest ready job, come from a look at `looked_at` jobs: unless
    `is_complete`, there may be more, and older ones.
    """

    queue: str
    ready: int
    running: int
    delayed: int
    retrying: int
    dead: int
    succeeded: int
    cancelled: int
    because: Mapping[str, int]
    oldest_at: Moment | None
    oldest_minutes: float | None
    looked_at: int
    is_complete: bool


class JobStatisticsReply(Reply, frozen=True, kw_only=True):
    """The jobs that match by state, and those of a state by the reason that they are in it.

    Of `looked_at` jobs, the first enqueued first: unless `is_complete`, there are more.
    """

    total: int
    states: Mapping[State, int]
    because: Mapping[State, Mapping[str, int]]
    oldest_at: Moment | None
    looked_at: int
    is_complete: bool


class RecentQuery(Body, frozen=True, kw_only=True):
    """Of which time, whose, of which task."""

    within: Within = 3600.0
    tenant: str | None = None
    task: str | None = None
    most: Most = MAX_ROWS_READ


class TaskFailuresReply(Reply, frozen=True, kw_only=True):
    """What failed of a task: attempts, jobs, the dead among these, when last, the commonest error."""

    task: str
    failures: int
    jobs: int
    dead: int
    last_at: Moment
    error: str


class FailuresReply(Reply, frozen=True, kw_only=True):
    """The failed attempts by task, most first. Unless `is_complete`, there are more."""

    tasks: Sequence[TaskFailuresReply]
    looked_at: int
    is_complete: bool


class TaskRetriesReply(Reply, frozen=True, kw_only=True):
    """The finished jobs of a task: how many succeeded, after a failure, died; the commonest errors."""

    task: str
    jobs: int
    succeeded: int
    after_retry: int
    dead: int
    success_rate: float
    mean_attempts: float
    errors: Mapping[str, int]


class RetriesReply(Reply, frozen=True, kw_only=True):
    """How the jobs of each task got on. Unless `is_complete`, there are more."""

    tasks: Sequence[TaskRetriesReply]
    looked_at: int
    is_complete: bool


@STATISTICS.get("/statistics/queues", "statistics.queues")
async def queues(call: WebCall, query: QueueStatisticsQuery) -> Sequence[QueueStatisticsReply]:
    """Count the jobs of each queue by state, and say how long the oldest ready one has waited."""
    name = None if query.queue is None else name_of("queue", query.queue)
    scope, store = scope_of(query.tenant), call.app.client.store
    found = await stats_of(store, scope, name, () if name is None else (name,), MAX_ROWS_READ)
    return [_queue_reply(one) for one in found.values()]


@STATISTICS.get("/statistics/jobs", "statistics.jobs")
async def jobs(call: WebCall, query: PlainFilters) -> JobStatisticsReply:
    """Count the jobs that match by state and by reason: of a correlation id, of a task, of a time."""
    counts = await call.app.jobs.acount(because=True, most=MAX_ROWS_READ, **query.filters)
    return JobStatisticsReply(
        total=counts.total,
        states=counts.states,
        because=counts.because,
        oldest_at=counts.oldest_at,
        looked_at=counts.looked_at,
        is_complete=counts.is_complete,
    )


@STATISTICS.get("/statistics/failures", "statistics.failures")
async def failures(call: WebCall, query: RecentQuery) -> FailuresReply:
    """Return the failed attempts of the last hour, or of another time, by task."""
    since = timedelta(seconds=query.within)
    report = await call.app.jobs.afailures(since=since, tenant=query.tenant, task=query.task, most=query.most)
    by_task = await redactors(call.app, [one.task for one in report.tasks])
    return FailuresReply(
        tasks=[
            TaskFailuresReply(
                task=one.task,
                failures=one.failures,
                jobs=one.jobs,
                dead=one.dead,
                last_at=one.last_at,
                error=by_task[one.task].text(one.error) or "",
            )
            for one in report.tasks
        ],
        looked_at=report.looked_at,
        is_complete=report.is_complete,
    )


@STATISTICS.get("/statistics/retries", "statistics.retries")
async def retries(call: WebCall, query: RecentQuery) -> RetriesReply:
    """Return how the jobs of each task got on: success after a retry, mean attempts, commonest errors."""
    client, scope = call.app.client, scope_of(query.tenant)
    task = None if query.task is None else name_of("task", query.task)
    begin = await begin_of(client.store, timedelta(seconds=query.within))
    report = await report_retries(client, scope, begin, task, query.most)
    return RetriesReply(
        tasks=[
            TaskRetriesReply(
                task=one.task,
                jobs=one.jobs,
                succeeded=one.succeeded,
                after_retry=one.after_retry,
                dead=one.dead,
                success_rate=one.success_rate,
                mean_attempts=one.mean_attempts,
                errors=one.errors,
            )
            for one in report.tasks
        ],
        looked_at=report.looked_at,
        is_complete=report.is_complete,
    )


def _queue_reply(stats: QueueStats) -> QueueStatisticsReply:
    return QueueStatisticsReply(
        queue=stats.name,
        ready=stats.ready,
        running=stats.running,
        delayed=stats.delayed,
        retrying=stats.retrying,
        dead=stats.dead,
        succeeded=stats.succeeded,
        cancelled=stats.cancelled,
        because=stats.because,
        oldest_at=stats.oldest_at,
        oldest_minutes=stats.oldest_minutes,
        looked_at=stats.looked_at,
        is_complete=stats.is_complete,
    )
