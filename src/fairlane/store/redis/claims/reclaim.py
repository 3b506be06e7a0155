"""Reclaim jobs whose leases have expired."""

from __future__ import annotations

from uuid import UUID

from fairlane.model.instants import Instant
from fairlane.model.lifecycle.record_changes import lost
from fairlane.model.retry.decision import lose_lease
from fairlane.store.contract.claims import LostClaim, ReclaimReply, ReclaimRequest
from fairlane.store.contract.request import check_serves_all
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.records.job import StoredJob, to_attempts
from fairlane.store.redis.records.stored_jobs import JobUpdate, StoredJobs


async def reclaim(stored_jobs: StoredJobs, request: ReclaimRequest) -> ReclaimReply:
    """End the attempts whose leases have expired."""
    check_serves_all(request)
    lost_claims: dict[UUID, LostClaim] = {}

    def lose(now: Instant, stored: StoredJob) -> JobUpdate:
        job = stored.job
        loss = lose_lease(job)
        lost_claims[job.id] = LostClaim(job.id, job.tenant, job.queue, str(job.worker), job.fence, loss.state)
        after = lost(job, loss, now, request.attempts_kept)
        return JobUpdate(stored, after, attempts=to_attempts(after))

    done, is_partial = await stored_jobs.update_due(NAMES["leases"], request.limit, lose, request.expired_by)
    is_idle = not done and not await stored_jobs.count(NAMES["leases"])
    return ReclaimReply(tuple(lost_claims[id] for id in done), is_partial, is_idle)
