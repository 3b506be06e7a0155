"""Jobs as the REST API answers them: their types, and how they are made. Secrets are redacted (S6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec

from fairlane.app.admin.explain import Waiting
from fairlane.app.admin.job_trace import Trace
from fairlane.app.ambient import scope_for
from fairlane.app.fairlane import Fairlane
from fairlane.app.job import Attempt, Job
from fairlane.app.job_json import full_json, logs_json
from fairlane.app.redaction import Redactor, secret_names
from fairlane.model.failure import ErrorClass
from fairlane.model.job import AttemptOutcome, JobRecord
from fairlane.model.lifecycle.states import CancelReply, State
from fairlane.web.api.bodies import Moment


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What an endpoint answers."""


class ProgressReply(Reply, frozen=True, kw_only=True):
    """How far a running attempt is: a fraction from 0 to 1, and a note."""

    fraction: float
    note: str


class JobSummary(Reply, frozen=True, kw_only=True):
    """A job without what it carries: no arguments, no metadata, no result, no log.

    `schedule` and `slot` are what led to it; null if no schedule did.

    `started_at` and `duration` (seconds) are those of its last attempt; a running one has no duration yet.
    """

    id: UUID
    tenant: str
    queue: str
    task: str
    state: State
    because: str | None
    priority: int
    enqueued_at: Moment
    run_at: Moment
    started_at: Moment | None
    settled_at: Moment | None
    duration: float | None
    attempt: int
    failures: int
    max_attempts: int
    correlation_id: str
    created_by: str | None
    schedule: str | None
    slot: Moment | None
    tags: Sequence[str]


class EnqueuedReply(JobSummary, frozen=True, kw_only=True):
    """The job that answers for an enqueue. `created` is false if it existed, with the same key."""

    created: bool
    idempotency_key: str


class JobPage(Reply, frozen=True, kw_only=True):
    """One page of jobs, newest enqueue first. `cursor` null is the end.

    A page with a cursor may be short or empty. `total` is null behind the first page, or if not asked for.
    """

    items: Sequence[JobSummary]
    cursor: str | None
    total: TotalReply | None


class TotalReply(Reply, frozen=True, kw_only=True):
    """How many match. If not `is_exact`, estimated from the 10,000 jobs that were looked at."""

    number: int
    is_exact: bool


class AttemptReply(Reply, frozen=True, kw_only=True):
    """One execution of a job, ended or still running. `log` has the last lines of `ctx.log`."""

    number: int
    worker: str
    started_at: Moment
    ended_at: Moment | None
    outcome: AttemptOutcome
    error_class: ErrorClass | None
    error_type: str | None
    message: str | None
    traceback: str | None
    log: str | None


class JobReply(Reply, frozen=True, kw_only=True):
    """Everything about a job. `timeout` is in seconds. Arguments, result and metadata are JSON values."""

    id: UUID
    tenant: str
    queue: str
    task: str
    version: int
    state: State
    because: str | None
    created: bool
    priority: int
    attempt: int
    failures: int
    max_attempts: int
    timeout: float | None
    enqueued_at: Moment
    run_at: Moment
    expires_at: Moment | None
    settled_at: Moment | None
    started_at: Moment | None
    lease_until: Moment | None
    worker: str | None
    cancel_asked: bool
    correlation_id: str
    created_by: str | None
    schedule: str | None
    slot: Moment | None
    idempotency_key: str
    dedup_key: str | None
    parent_id: UUID | None
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    progress: ProgressReply | None
    attempts: Sequence[AttemptReply]
    arguments: Any
    result: Any


class WaitingReply(Reply, frozen=True, kw_only=True):
    """Why a job is not running: the first thing that keeps it, until when, and what to do about it.

    `schedule` and `slot` are what led to the job; null if no schedule did.
    """

    reason: str
    subject: str
    until: Moment | None
    ahead: int | None
    advice: str
    schedule: str | None
    slot: Moment | None


class TracedJobReply(JobSummary, frozen=True, kw_only=True):
    """A job of a trace. `depth` is how many of its ancestors are in the trace."""

    parent_id: UUID | None
    depth: int


class TraceReply(Reply, frozen=True, kw_only=True):
    """What led to a job and what came of it, each job behind its parent."""

    id: UUID
    items: Sequence[TracedJobReply]
    is_complete: bool


class AttemptLogReply(Reply, frozen=True, kw_only=True):
    """The last lines that an attempt logged."""

    attempt: int
    outcome: AttemptOutcome
    lines: Sequence[str]


class JobResultReply(Reply, frozen=True, kw_only=True):
    """What a job returned. `is_there` is false unless it succeeded and its result is still stored."""

    state: State
    is_there: bool
    result: Any


class CancelledReply(Reply, frozen=True, kw_only=True):
    """What became of a cancel: `cancelled`, `requested` of a running job, or `finished` before.

    `others` is how many jobs below it were cancelled or asked to stop, too.
    """

    answer: CancelReply
    others: int


class StateReply(Reply, frozen=True, kw_only=True):
    """The state of a job after a change."""

    id: UUID
    state: State


async def redactors(app: Fairlane, tasks: Iterable[str]) -> dict[str, Redactor]:
    """Return what redacts the jobs of each task, with the fields that the task declares secret."""
    names = await secret_names(app.client, tasks, scope_for(None))
    return {task: Redactor(reveals=False, names=secret) for task, secret in names.items()}


async def summaries(app: Fairlane, jobs: Sequence[Job[Any]]) -> list[JobSummary]:
    """Return the list entries of jobs."""
    by_task = await redactors(app, {job.task for job in jobs})
    return [JobSummary(**_summary(job, by_task[job.task])) for job in jobs]


async def enqueued_replies(app: Fairlane, jobs: Sequence[Job[Any]]) -> list[EnqueuedReply]:
    """Return the jobs that answer for an enqueue."""
    by_task = await redactors(app, {job.task for job in jobs})
    return [
        EnqueuedReply(
            **_summary(job, by_task[job.task]),
            created=job.created,
            idempotency_key=by_task[job.task].text(job.idempotency_key) or "",
        )
        for job in jobs
    ]


def _summary(job: Job[Any], redactor: Redactor) -> dict[str, Any]:
    last = job.attempts[-1] if job.attempts else None
    ended_at = None if last is None else last.ended_at
    duration = None if last is None or ended_at is None else (ended_at - last.started_at).total_seconds()
    return {
        "id": job.id,
        "tenant": job.tenant,
        "queue": job.queue,
        "task": job.task,
        "state": job.state,
        "because": redactor.text(job.because),
        "priority": job.priority,
        "enqueued_at": job.enqueued_at,
        "run_at": job.run_at,
        "started_at": None if last is None else last.started_at,
        "settled_at": job.settled_at,
        "duration": duration,
        "attempt": job.attempt,
        "failures": job.failures,
        "max_attempts": job.max_attempts,
        "correlation_id": redactor.text(job.correlation_id) or "",
        "created_by": redactor.text(job.created_by),
        "schedule": job.schedule,
        "slot": job.slot,
        "tags": sorted(redactor.text(tag) or "" for tag in job.tags),
    }


async def job_reply(
    app: Fairlane, record: JobRecord, *, reveals: bool = False, created: bool = True
) -> JobReply:
    """Return everything about a job, with what looks secret only if it is to be revealed."""
    names = await secret_names(app.client, [record.task], scope_for(None))
    redactor = Redactor(reveals=reveals, names=names[record.task])
    values = full_json(record, app.client.show(record, created=created), redactor)
    return msgspec.convert(values, JobReply)


def log_replies(attempts: Iterable[Attempt], redactor: Redactor) -> list[AttemptLogReply]:
    """Return the log of each attempt that has one."""
    return [msgspec.convert(logs_json(one, redactor), AttemptLogReply) for one in attempts if one.log]


def waiting_reply(waiting: Waiting, redactor: Redactor) -> WaitingReply:
    """Return why a job is not running."""
    return WaitingReply(
        reason=waiting.reason,
        subject=redactor.text(waiting.subject) or "",
        until=waiting.until,
        ahead=waiting.ahead,
        advice=waiting.advice,
        schedule=waiting.schedule,
        slot=waiting.slot,
    )


async def trace_reply(app: Fairlane, trace: Trace) -> TraceReply:
    """Return a trace."""
    by_task = await redactors(app, {one.job.task for one in trace})
    items = [
        TracedJobReply(
            **_summary(one.job, by_task[one.job.task]), parent_id=one.job.parent_id, depth=one.depth
        )
        for one in trace
    ]
    return TraceReply(id=trace.id, items=items, is_complete=trace.is_complete)
