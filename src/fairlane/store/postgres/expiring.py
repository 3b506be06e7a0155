"""Cancel waiting jobs whose expiry has passed (S21)."""

from __future__ import annotations

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import Because, State, because, is_expired
from fairlane.store.contract.claims import ExpireReply, PassRequest
from fairlane.store.postgres.connect import Server
from fairlane.store.postgres.moving import by_queue, stop_waiting
from fairlane.store.postgres.rows import plain_uuid
from fairlane.store.postgres.statements import load
from fairlane.store.postgres.sweeping import Floor


async def expire(server: Server, floor: Floor, request: PassRequest) -> ExpireReply:
    """Cancel what may no longer start, earliest first; one question where nothing has expired."""
    statement = load("settle", server.schema).expired
    ((at, ids, queues, took),) = await server.fetch(statement, server.now(), floor(), request.most + 1)
    found = [(plain_uuid(id), queue) for id, queue in zip(ids or (), queues or (), strict=True)]
    word = because(Because.EXPIRED)
    expired = 0
    for queue, ids in by_queue(found[: request.most]).items():
        expired += len(await stop_waiting(server, queue, ids, State.CANCELLED, word, _has_expired))
    floor.passed(at, is_whole=expired == len(found), took=took)
    return ExpireReply(expired, len(found) > request.most)


def _has_expired(job: JobRecord, at: Instant) -> bool:
    return is_expired(job.expires_at, at)
