"""Expire waiting jobs: the pass of the duty. Claims also expire what they meet."""

from __future__ import annotations

from fairlane.model.instants import Instant
from fairlane.model.lifecycle.record_changes import stopped
from fairlane.model.lifecycle.states import Because, State, because
from fairlane.store.contract.claims import ExpireReply, PassRequest
from fairlane.store.contract.request import check_serves_all
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.records.job import StoredJob
from fairlane.store.redis.records.stored_jobs import JobUpdate, StoredJobs


async def expire(stored_jobs: StoredJobs, request: PassRequest) -> ExpireReply:
    """Cancel waiting jobs that have expired."""
    check_serves_all(request)
    reason = because(Because.EXPIRED)

    def end(now: Instant, stored: StoredJob) -> JobUpdate:
        return JobUpdate(stored, stopped(stored.job, State.CANCELLED, reason, now))

    done, is_partial = await stored_jobs.update_due(NAMES["expiries"], request.limit, end)
    return ExpireReply(len(done), is_partial)
