"""Take back claims that are stuck: they are older than they may be, although their worker reports."""

from __future__ import annotations

from uuid import UUID

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.journal.facts import stuck as stuck_event
from fairlane.model.lifecycle.record_changes import settled
from fairlane.model.retry.decision import reconcile
from fairlane.model.retry.stuck import is_stuck, settle_stuck
from fairlane.store.contract.claims import StuckClaim, StuckReply, StuckRequest, stuck_claim
from fairlane.store.contract.request import check_serves_all
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.records.job import StoredJob, to_attempts
from fairlane.store.redis.records.stored_jobs import JobUpdate, StoredJobs


async def take_stuck(stored_jobs: StoredJobs, request: StuckRequest) -> StuckReply:
    """End stuck claims, oldest first. Reads all running jobs, page by page."""
    check_serves_all(request)
    now, _ = await stored_jobs.get(())
    running = [stored.job async for _, stored in stored_jobs.scan(NAMES["leases"])]
    found = [job for job in running if _is_due(job, request, now)]
    found.sort(key=lambda job: (job.started_at, job.id.bytes))
    taken: dict[UUID, StuckClaim] = {}

    def end(at: Instant, stored: StoredJob) -> JobUpdate | None:
        job = stored.job
        if not _is_due(job, request, at):  # it has ended since
            return None
        after = settled(job, reconcile(job, settle_stuck(job, at), at), at, request.attempts_kept)
        taken[job.id] = stuck_claim(job, after.state)
        return JobUpdate(
            stored,
            after,
            attempts=to_attempts(after),
            queues=(job.queue,),
            events=(stuck_event(job, after.state),),
        )

    wanted = [job.id for job in found[: request.limit]]
    done = await stored_jobs.update(request.scope, wanted, end)
    return StuckReply(tuple(taken[id] for id in done), len(found) > request.limit)


def _is_due(job: JobRecord, request: StuckRequest, now: Instant) -> bool:
    return is_stuck(job, now) and (job.started_at or 0) >= request.started_after
