"""End claims because an operator says so (S72); condemn waiting jobs that are to be dead."""

from __future__ import annotations

from uuid import UUID

from fairlane.model.instants import Instant
from fairlane.model.lifecycle.record_changes import settled, stopped
from fairlane.model.lifecycle.states import WAITING, Because, State, because
from fairlane.model.retry.decision import reconcile
from fairlane.model.retry.revoke import answer_revoke, settle_revoked
from fairlane.store.audit_entries import job_entries
from fairlane.store.contract.claims import RevokedJob, RevokeReply, RevokeRequest
from fairlane.store.redis.records.job import StoredJob, to_attempts
from fairlane.store.redis.records.stored_jobs import JobUpdate, StoredJobs


async def revoke(stored_jobs: StoredJobs, request: RevokeRequest) -> RevokeReply:
    """End the claims of these jobs; the model decides what becomes of each job."""
    answers: dict[UUID, RevokedJob] = {}

    def revoked(now: Instant, stored: StoredJob) -> JobUpdate | None:
        job = stored.job
        answer = answer_revoke(job, request.how)
        if answer != "revoked":
            answers[job.id] = RevokedJob(job.id, answer, job.state)
            return None
        update = _update(request, stored, now)
        if update.job is not None:
            answers[job.id] = RevokedJob(job.id, answer, update.job.state)
        return update

    ids = dict.fromkeys(request.ids)
    done = set(await stored_jobs.update(request.scope, ids, revoked))
    found = (answers[id] for id in ids if id in answers)
    return RevokeReply(tuple(one for one in found if one.answer != "revoked" or one.id in done))


def _update(request: RevokeRequest, stored: StoredJob, now: Instant) -> JobUpdate:
    job = stored.job
    if job.state in WAITING:
        dead = stopped(job, State.DEAD, because(Because.CONDEMNED, request.reason), now)
        return JobUpdate(stored, dead, audit=job_entries(request.operation, ((job, dead),)))
    settlement = settle_revoked(job, request.how, request.delay, request.reason)
    after = settled(job, reconcile(job, settlement, now), now, request.attempts_kept)
    audit = job_entries(request.operation, ((job, after),))
    return JobUpdate(stored, after, attempts=to_attempts(after), queues=(job.queue,), audit=audit)
