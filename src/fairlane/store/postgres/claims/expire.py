"""Expire waiting jobs: cancel those that may no longer start (S21)."""

from __future__ import annotations

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import Because, State, because, is_expired
from fairlane.store.contract.claims import ExpireReply, PassRequest
from fairlane.store.postgres.claims.reclaim import ScanStart
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.jobs.cancel import by_queue, stop_waiting
from fairlane.store.postgres.rows import plain_uuid
from fairlane.store.postgres.statements import load


async def expire(server: Server, scan_start: ScanStart, request: PassRequest) -> ExpireReply:
    """Cancel expired jobs, earliest first; one query if there are none."""
    statement = load("settle", server.schema).expired_jobs
    ((at, ids, queues, took),) = await server.fetch(statement, server.now(), scan_start(), request.limit + 1)
    found = [(plain_uuid(id), queue) for id, queue in zip(ids or (), queues or (), strict=True)]
    reason = because(Because.EXPIRED)
    expired = 0
    for queue, ids in by_queue(found[: request.limit]).items():
        expired += len(await stop_waiting(server, queue, ids, State.CANCELLED, reason, _has_expired))
    scan_start.passed(at, is_whole=expired == len(found), took=took)
    return ExpireReply(expired, len(found) > request.limit)


def _has_expired(job: JobRecord, at: Instant) -> bool:
    return is_expired(job.expires_at, at)
