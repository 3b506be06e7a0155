"""Cancel jobs, or move them to the dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.journal.operations import Operation
from fairlane.model.lifecycle.record_changes import stopped
from fairlane.model.lifecycle.states import TRANSITIONS, Because, CancelReply, Event, State, because
from fairlane.store.audit_entries import job_entries
from fairlane.store.contract.jobs import StopRequest
from fairlane.store.redis.records.job import StoredJob
from fairlane.store.redis.records.stored_jobs import JobUpdate, StoredJobs


async def cancel(stored_jobs: StoredJobs, request: StopRequest) -> Mapping[UUID, CancelReply]:
    """Cancel waiting jobs; request cancellation of running ones."""
    reason = because(Because.ASKED, request.reason)
    replies: dict[UUID, CancelReply] = {}

    def cancelled(now: Instant, stored: StoredJob) -> JobUpdate | None:
        job = stored.job
        if (job.state, Event.CANCEL) in TRANSITIONS:
            replies[job.id] = CancelReply.CANCELLED
            after = stopped(job, State.CANCELLED, reason, now)
            return JobUpdate(stored, after, audit=job_entries(request.operation, ((job, after),)))
        if (job.state, Event.ASK_CANCEL) in TRANSITIONS:
            replies[job.id] = CancelReply.REQUESTED
            return request_cancellation(stored, reason, request.operation)
        replies[job.id] = CancelReply.FINISHED
        return None

    ids = dict.fromkeys(request.ids)
    await stored_jobs.update(request.scope, ids, cancelled)
    return {id: replies[id] for id in ids if id in replies}


async def move_to_dead(stored_jobs: StoredJobs, request: StopRequest) -> tuple[UUID, ...]:
    """Move waiting jobs to the dead letters."""
    reason = because(Because.CONDEMNED, request.reason)

    def dead(now: Instant, stored: StoredJob) -> JobUpdate | None:
        job = stored.job
        if (job.state, Event.CONDEMN) not in TRANSITIONS:
            return None
        after = stopped(job, State.DEAD, reason, now)
        return JobUpdate(stored, after, audit=job_entries(request.operation, ((job, after),)))

    return await stored_jobs.update(request.scope, dict.fromkeys(request.ids), dead)


def request_cancellation(stored: StoredJob, reason: str, operation: Operation | None = None) -> JobUpdate:
    """Set the flag of a running job and wake its worker; the first reason stays."""
    job = after = stored.job
    if not job.is_cancel_asked:
        after = msgspec.structs.replace(job, is_cancel_asked=True, because=reason)
    audit = job_entries(operation, ((job, after),))
    return JobUpdate(stored, after, workers=(str(job.worker),), audit=audit)
