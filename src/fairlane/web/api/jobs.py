"""Jobs, read: find, count, get, explain, trace, attempts, logs, result.

What changes them is in `job_enqueue`, `job_changes`, `job_bulk`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, cast
from uuid import UUID

from msgspec import Meta

from fairlane.app.admin.job_search import search_of
from fairlane.app.admin.job_totals import total_of
from fairlane.app.admin.validation import FindFilters
from fairlane.app.ambient import scope_for
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.web.api.bodies import Cursor, JobFilters, Limit
from fairlane.web.api.job_replies import (
    AttemptLogReply,
    AttemptReply,
    JobPage,
    JobReply,
    JobResultReply,
    TotalReply,
    TraceReply,
    WaitingReply,
    job_reply,
    log_replies,
    redactors,
    summaries,
    trace_reply,
    waiting_reply,
)
from fairlane.web.call import WebCall
from fairlane.web.declare import EndpointGroup

JOBS: Final = EndpointGroup("jobs", "Jobs in every state: what they are, why they wait, what became of them.")


class FindJobs(JobFilters, frozen=True, kw_only=True):
    """Which jobs, and which page of them."""

    limit: Limit = 100
    cursor: Cursor = None
    total: Annotated[bool, Meta(description="Whether the first page says how many match.")] = True


@JOBS.get("/jobs", "jobs.find")
async def find(call: WebCall, query: FindJobs) -> JobPage:
    """Find jobs by a query and filters, newest enqueue first.

    For the next page send the cursor of the last one with the same query. A job that matches all the time is
    returned exactly once, whatever settles meanwhile.
    """
    page = await call.app.jobs.afind(query.query, **query.filters, limit=query.limit, cursor=query.cursor)
    total = await counted(call, query) if query.total and query.cursor is None else None
    return JobPage(items=await summaries(call.app, page.items), cursor=page.cursor, total=total)


@JOBS.get("/jobs/count", "jobs.count")
async def count(call: WebCall, query: JobFilters) -> TotalReply:
    """Count the jobs that match: exact if at most 10,000 must be looked at, else estimated; it says which.

    By tenant, queue and state alone the number is exact, however large.
    """
    return await counted(call, query)


async def counted(call: WebCall, query: JobFilters) -> TotalReply:
    """Return how many jobs match."""
    store = call.app.client.store
    filters = cast("FindFilters", query.filters)
    found = await total_of(store, await search_of(store, query.query, filters))
    return TotalReply(number=found.number, is_exact=found.is_exact)


@JOBS.get("/jobs/{id}", "jobs.get")
async def get(call: WebCall, id: UUID) -> JobReply:
    """Return everything about a job; what looks secret is `[redacted]`."""
    return await job_reply(call.app, await stored_job(call, id))


@JOBS.get("/jobs/{id}/explain", "jobs.explain")
async def explain(call: WebCall, id: UUID) -> WaitingReply:
    """Say why a job is not running, until when, and what to do about it."""
    waiting, task = await call.app.jobs.aexplain(id), (await stored_job(call, id)).task
    return waiting_reply(waiting, (await redactors(call.app, [task]))[task])


@JOBS.get("/jobs/{id}/trace", "jobs.trace")
async def trace(call: WebCall, id: UUID) -> TraceReply:
    """Return what led to a job and what came of it: its ancestors, and all jobs of their correlation ids."""
    return await trace_reply(call.app, await call.app.jobs.atrace(id))


@JOBS.get("/jobs/{id}/attempts", "jobs.attempts")
async def attempts(call: WebCall, id: UUID) -> Sequence[AttemptReply]:
    """Return the last attempts of a job, oldest first, with their errors."""
    return (await job_reply(call.app, await stored_job(call, id))).attempts


@JOBS.get("/jobs/{id}/logs", "jobs.logs")
async def logs(call: WebCall, id: UUID) -> Sequence[AttemptLogReply]:
    """Return the last lines that each attempt of a job has logged."""
    record = await stored_job(call, id)
    redactor = (await redactors(call.app, [record.task]))[record.task]
    return log_replies(call.app.client.show(record).attempts, redactor)


@JOBS.get("/jobs/{id}/result", "jobs.result")
async def result(call: WebCall, id: UUID) -> JobResultReply:
    """Return the result of a job, without waiting for it."""
    record = await stored_job(call, id)
    found: Any = (await job_reply(call.app, record)).result
    is_there = record.state is State.SUCCEEDED and record.result != b""
    return JobResultReply(state=record.state, is_there=is_there, result=found)


async def stored_job(call: WebCall, id: UUID) -> JobRecord:
    """Return a stored job of the caller's scope; `JobNotFound` for every other."""
    return await call.app.client.aget(id, scope_for(None))
