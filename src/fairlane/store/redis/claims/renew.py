"""Renew leases, and tell a worker which of its jobs are asked to stop."""

from __future__ import annotations

from uuid import UUID

from fairlane.store.contract.claims import RenewReply, RenewRequest, WorkerRequest
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.records.job import pack, to_progress
from fairlane.store.redis.records.stored_jobs import StoredJobs


async def renew(client: RedisClient, request: RenewRequest) -> RenewReply:
    """Extend the leases of claims that still stand, store what their handlers wrote; name the others."""
    ids = b"".join(one.id.bytes for one in request.renewals)
    renewals = [
        (one.fence, to_progress(one.progress), (one.metadata or b"").decode(), one.spent)
        for one in request.renewals
    ]
    scope = request.scope.tenant or ""
    until, replies = await client.run(
        "claims/renew", request.worker, scope, request.lease, ids, pack(renewals)
    )
    by_id = list(zip((one.id for one in request.renewals), replies, strict=True))
    return RenewReply(
        tuple(id for id, reply in by_id if reply == 0),
        tuple(id for id, reply in by_id if reply > 1),
        until,
    )


async def cancel_asked(stored_jobs: StoredJobs, request: WorkerRequest) -> tuple[UUID, ...]:
    """Return the worker's running jobs whose cancellation was requested."""
    asked = stored_jobs.scan(NAMES["cancel_asked"])
    jobs = [stored.job async for _, stored in asked]
    return tuple(job.id for job in jobs if job.worker == request.worker and request.scope.covers(job.tenant))
