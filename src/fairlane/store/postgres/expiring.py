"""Cancel waiting jobs whose expiry has passed (S21), and those of a scope that is purged (S46)."""

from __future__ import annotations

from uuid import UUID

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import Because, State, because, is_expired
from fairlane.store.contract.claims import ExpireReply, PassRequest
from fairlane.store.contract.request import READ_MOST, Place, from_cursor, to_cursor
from fairlane.store.contract.upkeep import PurgeReply, PurgeRequest
from fairlane.store.postgres.connect import Server
from fairlane.store.postgres.moving import stop_waiting
from fairlane.store.postgres.rows import plain_uuid
from fairlane.store.postgres.statements import load
from fairlane.store.postgres.sweeping import Floor

_FIRST = (0, UUID(int=0))
_LAST = (2**63 - 1, UUID(int=2**128 - 1))


async def expire(server: Server, floor: Floor, request: PassRequest) -> ExpireReply:
    """Cancel what may no longer start, earliest first; one question where nothing has expired."""
    statement = load("settle", server.schema).expired
    rows = await server.fetch(statement, server.now(), floor(), request.most + 1)
    at, found = rows[0][0], [(plain_uuid(id), queue) for _, id, queue in rows if id is not None]
    word = because(Because.EXPIRED)
    expired = 0
    for queue, ids in _by_queue(found[: request.most]).items():
        expired += len(await stop_waiting(server, queue, ids, State.CANCELLED, word, _has_expired))
    floor.passed(at, is_whole=len(found) <= request.most)
    return ExpireReply(expired, len(found) > request.most)


def _has_expired(job: JobRecord, at: Instant) -> bool:
    return is_expired(job.expires_at, at)


async def purge(server: Server, request: PurgeRequest) -> PurgeReply:
    """Cancel a page of the waiting jobs of a scope, oldest enqueue first."""
    sql = load("moving", server.schema)
    start = _FIRST
    if request.cursor is not None:
        place = from_cursor(request.cursor)
        start = (place.enqueued_at, place.id)
    edge = await server.fetch(sql.edge, *start, READ_MOST - 1)
    end = (edge[0][0], plain_uuid(edge[0][1])) if len(edge) > 1 else None
    values = (request.scope.tenant, request.queue, request.task, request.most + 1, *start, *(end or _LAST))
    rows = [(at, plain_uuid(id), queue) for at, id, queue in await server.fetch(sql.purged, *values)]
    page = rows[: request.most]
    word = because(Because.PURGED, request.reason)
    cancelled = 0
    for queue, ids in _by_queue([(id, queue) for _, id, queue in page]).items():
        cancelled += len(await stop_waiting(server, queue, ids, State.CANCELLED, word))
    last = page[-1][:2] if len(rows) > request.most else end
    return PurgeReply(cancelled, None if last is None else to_cursor(Place(*last)))


def _by_queue(jobs: list[tuple[UUID, str]]) -> dict[str, list[UUID]]:
    queues: dict[str, list[UUID]] = {}
    for id, queue in jobs:
        queues.setdefault(queue, []).append(id)
    return queues
