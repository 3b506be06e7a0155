"""Purge: cancel all waiting jobs of a scope (S46), a page a pass, oldest enqueue first."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from fairlane.model.lifecycle.states import Because, State, because
from fairlane.store.contract.request import MAX_ROWS_READ, JobPosition, from_cursor, to_cursor
from fairlane.store.contract.upkeep import PurgeReply, PurgeRequest
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.jobs.cancel import by_queue, stop_waiting
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.rows import plain_uuid
from fairlane.store.postgres.statements import load

_FIRST: Final = (0, UUID(int=0))
_LAST: Final = (2**63 - 1, UUID(int=2**128 - 1))


async def purge(server: Server, request: PurgeRequest) -> PurgeReply:
    """Cancel a page of the waiting jobs of a scope, oldest enqueue first."""
    sql = load("cancel", server.schema)
    start = _FIRST
    if request.cursor is not None:
        position = from_cursor(request.cursor)
        start = (position.enqueued_at, position.id)
    tenants = () if request.scope.tenant is None else (request.scope.tenant,)
    edge, purged = (sql.edge_of_tenant, sql.purged_of_tenant) if tenants else (sql.edge, sql.purged)
    async with read_transaction(server, in_order=True) as connection:
        last_two = await connection.fetch(edge, *start, MAX_ROWS_READ - 1, *tenants)
        end = (last_two[0][0], plain_uuid(last_two[0][1])) if len(last_two) > 1 else None
        values = (*start, *(end or _LAST), request.limit + 1, request.queue, request.task, *tenants)
        rows = [(at, plain_uuid(id), queue) for at, id, queue in await connection.fetch(purged, *values)]
    page = rows[: request.limit]
    reason = because(Because.PURGED, request.reason)
    cancelled = 0
    for queue, ids in by_queue([(id, queue) for _, id, queue in page]).items():
        cancelled += len(await stop_waiting(server, queue, ids, State.CANCELLED, reason))
    last = page[-1][:2] if len(rows) > request.limit else end
    return PurgeReply(cancelled, None if last is None else to_cursor(JobPosition(*last)))
