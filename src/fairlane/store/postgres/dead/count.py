"""Count dead letters per tenant, queue and review, a page at a time."""

from __future__ import annotations

from fairlane.store.contract.dead import DeadCount, DeadCountPage, DeadCountRequest
from fairlane.store.contract.request import CountPosition, check_counts, from_cursor, to_cursor
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.statements import load


async def count(server: Server, request: DeadCountRequest) -> DeadCountPage:
    """Return the counts after a position."""
    check_counts(request.limit)
    start = (
        CountPosition("", "", "") if request.cursor is None else from_cursor(request.cursor, CountPosition)
    )
    values = (request.scope.tenant, start.tenant, start.queue, start.label, request.limit + 1)
    async with read_transaction(server) as connection:
        rows = await connection.fetch(load("dead", server.schema).counts, *values)
    found = [DeadCount(*row) for row in rows]
    page, rest = found[: request.limit], found[request.limit :]
    last = CountPosition(page[-1].tenant, page[-1].queue, page[-1].review) if page and rest else None
    return DeadCountPage(tuple(page), None if last is None else to_cursor(last))
