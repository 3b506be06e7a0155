"""Edit a waiting job, or let a delayed one run now."""

from __future__ import annotations

from uuid import UUID

import msgspec
from msgspec import UNSET

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.record_changes import due_now
from fairlane.model.lifecycle.states import TRANSITIONS, WAITING, Event, State
from fairlane.model.scheduling.priority import sort_key
from fairlane.store.audit_entries import job_entries
from fairlane.store.contract.jobs import EditReply, EditRequest, RunNowRequest, check_edit
from fairlane.store.redis.records.job import StoredJob, to_body
from fairlane.store.redis.records.stored_jobs import JobUpdate, StoredJobs


async def edit(stored_jobs: StoredJobs, request: EditRequest) -> EditReply:
    """Change fields of one job while it waits."""
    check_edit(request)
    reply = EditReply("not_found")

    def edited(now: Instant, stored: StoredJob) -> JobUpdate | None:
        nonlocal reply
        reply = _edited(request, stored.job, now)
        after = reply.job
        if after is None:
            return None
        audit = job_entries(request.operation, ((stored.job, after),))
        return JobUpdate(stored, after, body=to_body(after), queues=(after.queue,), audit=audit)

    await stored_jobs.update(request.scope, (request.id,), edited)
    return reply


async def run_now(stored_jobs: StoredJobs, request: RunNowRequest) -> tuple[UUID, ...]:
    """Make delayed jobs ready."""

    def ready(now: Instant, stored: StoredJob) -> JobUpdate | None:
        job = stored.job
        if (job.state, Event.RUN_NOW) not in TRANSITIONS:
            return None
        after = due_now(job, now)
        audit = job_entries(request.operation, ((job, after),))
        return JobUpdate(stored, after, queues=(job.queue,), audit=audit)

    return await stored_jobs.update(request.scope, dict.fromkeys(request.ids), ready)


def _edited(request: EditRequest, job: JobRecord, now: Instant) -> EditReply:
    if job.state not in WAITING:
        return EditReply("not_waiting")
    if request.run_at is not UNSET and job.state is not State.DELAYED:
        return EditReply("not_delayed")
    names = ("priority", "run_at", "expires_at", "tags", "payload", "checksum", "version")
    given = {name: getattr(request, name) for name in names}
    changed = msgspec.structs.replace(job, **{name: v for name, v in given.items() if v is not UNSET})
    if request.run_at is not UNSET and changed.run_at <= now:
        changed = due_now(changed, now)
    changed = msgspec.structs.replace(changed, sort_key=sort_key(changed.run_at, changed.priority))
    return EditReply("edited", changed)
