"""Count jobs per tenant, queue and state, a page at a time."""

from __future__ import annotations

from typing import Final

from fairlane.model.lifecycle.states import State
from fairlane.store.contract.jobs import Count, CountPage, CountRequest
from fairlane.store.contract.request import CountPosition, check_counts, from_cursor, to_cursor
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.statements import load

_LAST_STATE: Final = max(State).value


async def count(server: Server, request: CountRequest) -> CountPage:
    """Return the counts after a position. Where many are zero, a page is short and still has a cursor."""
    check_counts(request.limit)
    start = (
        CountPosition("", "", "") if request.cursor is None else from_cursor(request.cursor, CountPosition)
    )
    values = (request.scope.tenant, request.queue, start.tenant, start.queue, start.label, request.limit)
    sql = load("count", server.schema)
    async with read_transaction(server) as connection:
        edge = await connection.fetchrow(sql.edge, *values)
        rows = await connection.fetch(sql.page, *values, *(edge or (None, None)))
    counts = [Count(tenant, queue, State(state), jobs) for tenant, queue, state, jobs in rows]
    page, rest = counts[: request.limit], counts[request.limit :]
    last = None if edge is None else CountPosition(edge[0], edge[1], _LAST_STATE)
    if rest:
        last = CountPosition(page[-1].tenant, page[-1].queue, page[-1].state.value)
    return CountPage(tuple(page), None if last is None else to_cursor(last))
