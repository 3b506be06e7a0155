"""One job: why it waits or what became of it, its attempts, what it carries, and what it is related to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from fairlane.app.admin.reveal import note_reveal
from fairlane.app.ambient import scope_for
from fairlane.app.job import Job
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import WAITING, State
from fairlane.web.api.debug import CheckReply, check_replies, diagnosis_of
from fairlane.web.api.job_replies import AttemptReply, JobReply, TracedJobReply, job_reply, trace_reply
from fairlane.web.call import WebCall
from fairlane.web.declare import Body
from fairlane.web.html.timeline import timeline
from fairlane.web.page import PageView

_RELATED: Final = 30
_RUNS: Final = 30

REASONS: Final[Mapping[str, str]] = {
    "turn": "it waits for its turn",
    "time": "it was enqueued for later",
    "retry": "its last attempt failed and it will be tried again",
    "snooze": "its handler asked to come back later",
    "unknown_task": "the worker that claimed it does not know its task",
    "unknown_version": "the worker that claimed it has older code than its arguments",
    "paused": "something is paused",
    "running_limit": "its tenant runs as many jobs of the queue as it may",
    "rate": "a rate spaces its starts out",
    "gate": "its gate is full",
    "breaker": "what it calls is down, and its breaker lets nobody else pass now",
    "budget": "its budget has no room for another job",
    "no_worker": "no live worker serves its queue",
}
"""What each reason of `explain` says behind "Waiting because"."""


class Reveal(Body, frozen=True, kw_only=True):
    """Why somebody wants to see what a job carries in clear."""

    note: str = ""
    next: str = ""


class Inspect(Body, frozen=True, kw_only=True):
    """What the form sends that checks a job: nothing but where it stands."""

    next: str = ""


class ShownAttempt(msgspec.Struct, frozen=True):
    """An attempt, and the earlier one that has the same traceback."""

    attempt: AttemptReply
    same_as: int | None


async def show_job(call: WebCall, id: UUID) -> PageView:
    """Show one job; what looks secret is redacted."""
    record = await call.app.client.aget(id, scope_for(None))
    return await _view(call, record, await job_reply(call.app, record), is_revealed=False)


async def reveal_job(call: WebCall, id: UUID, query: Reveal) -> PageView:
    """Show one job in clear. Who looked, and why, is audited first."""
    record = await call.app.client.aget(id, scope_for(None))
    await note_reveal(call.app.client, record, "jobs.reveal", query.note)
    return await _view(call, record, await job_reply(call.app, record, reveals=True), is_revealed=True)


async def inspect_job(call: WebCall, id: UUID, query: Inspect) -> PageView:  # noqa: ARG001 (it has no more)
    """Show one job with the results of all checks of its consistency."""
    record = await call.app.client.aget(id, scope_for(None))
    checks = check_replies(await diagnosis_of(call, id))
    return await _view(call, record, await job_reply(call.app, record), is_revealed=False, checks=checks)


async def _view(
    call: WebCall,
    record: JobRecord,
    job: JobReply,
    *,
    is_revealed: bool,
    checks: Sequence[CheckReply] = (),
) -> PageView:
    runs = await call.app.jobs.afind(task=job.task, tenant=job.tenant, limit=_RUNS)
    related, is_complete = await _related(call, job)
    values: dict[str, Any] = {
        "job": job,
        "waiting": await call.app.jobs.aexplain(job.id) if record.state in WAITING else None,
        "reasons": REASONS,
        "line": timeline(job),
        "attempts": _attempts(job),
        "related": related,
        "is_complete": is_complete,
        "runs": _runs(runs.items),
        "arguments": _pretty(job.arguments),
        "result": _pretty(job.result) if record.state is State.SUCCEEDED and record.result else None,
        "metadata": _pretty(job.metadata) if job.metadata else None,
        "is_revealed": is_revealed,
        "checks": checks,
        "sees_schedule": call.principal.tenant is None,
        "sees_guards": call.principal.tenant is None,
    }
    return PageView("jobs/job.html", values)


def _attempts(job: JobReply) -> Sequence[ShownAttempt]:
    """Return the attempts, newest first; a traceback that a newer one shows is not shown again."""
    shown: dict[str, int] = {}
    found: list[ShownAttempt] = []
    for attempt in reversed(job.attempts):
        same_as = shown.get(attempt.traceback or "")
        if attempt.traceback:
            shown.setdefault(attempt.traceback, attempt.number)
        found.append(ShownAttempt(attempt, same_as))
    return found


async def _related(call: WebCall, job: JobReply) -> tuple[Sequence[TracedJobReply], bool]:
    """Return the jobs with the same correlation id, and the ancestors, without the job itself."""
    trace = await trace_reply(call.app, await call.app.jobs.atrace(job.id))
    others = [one for one in trace.items if one.id != job.id]
    return others[:_RELATED], trace.is_complete and len(others) <= _RELATED


def _runs(jobs: Sequence[Job[Any]]) -> Sequence[tuple[Job[Any], float, int]]:
    """Return the last runs of a task, oldest first, with their seconds and the height of their bar."""
    ended = [job for job in jobs if job.attempts and job.attempts[-1].ended_at is not None]
    seconds = [
        (one.ended_at - one.started_at).total_seconds()
        for one in (job.attempts[-1] for job in ended)
        if one.ended_at is not None
    ]
    longest = max(seconds, default=0) or 1
    return [
        (job, took, max(4, round(44 * took / longest)))
        for job, took in zip(reversed(ended), reversed(seconds), strict=True)
    ]


def _pretty(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
