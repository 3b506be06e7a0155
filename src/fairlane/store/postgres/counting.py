"""Count jobs per tenant, queue and state, a page at a time."""

from __future__ import annotations

from typing import Final

from fairlane.model.lifecycle import State
from fairlane.store.contract.jobs import Count, CountPage, CountRequest
from fairlane.store.contract.request import CountPlace, check_page, from_cursor, to_cursor
from fairlane.store.postgres.connect import Server
from fairlane.store.postgres.reading import reading
from fairlane.store.postgres.statements import load

_LAST_STATE: Final = max(State).value


async def count(server: Server, request: CountRequest) -> CountPage:
    """Give the counts after a place. A page is short, with a cursor, where many counts are zero."""
    check_page(request.limit)
    start = CountPlace("", "", "") if request.cursor is None else from_cursor(request.cursor, CountPlace)
    values = (request.scope.tenant, request.queue, start.tenant, start.queue, start.word, request.limit)
    sql = load("counting", server.schema)
    async with reading(server) as connection:
        edge = await connection.fetchrow(sql.edge, *values)
        rows = await connection.fetch(sql.page, *values, *(edge or (None, None)))
    counts = [Count(tenant, queue, State(state), jobs) for tenant, queue, state, jobs in rows]
    page, rest = counts[: request.limit], counts[request.limit :]
    last = None if edge is None else CountPlace(edge[0], edge[1], _LAST_STATE)
    if rest:
        last = CountPlace(page[-1].tenant, page[-1].queue, page[-1].state.value)
    return CountPage(tuple(page), None if last is None else to_cursor(last))
