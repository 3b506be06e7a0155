"""Promote: make due jobs ready and unpark what can be, in queues that nobody claims from."""

from __future__ import annotations

from fairlane.model.instants import Instant
from fairlane.store.contract.claims import PassRequest, PromoteReply
from fairlane.store.postgres.claims.claim import earliest
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.statements import load


async def promote(server: Server, request: PassRequest) -> PromoteReply:
    """Promote in one transaction for each queue."""
    sql = load("claim", server.schema)
    promoted, is_partial = 0, False
    times: list[Instant | None] = []
    for queue, due, is_more in await server.fetch(sql.promote_plan, server.now(), request.limit):
        (row,) = await server.fetch(sql.promote, server.now(), queue, due)
        promoted += row["promoted"]
        is_partial = is_partial or is_more or row["is_partial"]
        times.append(row["next_due_at"])
        if row["is_any"]:
            server.hint((queue,))
    return PromoteReply(promoted, earliest(times), is_partial)
