"""Say who is first in line, from the index of ready jobs. Takes no lock of a queue."""

from __future__ import annotations

from fairlane.store.contract.line import FirstInLine, FirstRequest, JobLine, lines_in
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.statements import load


async def first_in_line(server: Server, request: FirstRequest) -> tuple[FirstInLine, ...]:
    """Return the first ready job of each line that has any."""
    lines = lines_in(request)
    if not lines:
        return ()
    values = ([line.tenant for line in lines], [line.queue for line in lines])
    async with read_transaction(server, in_order=True) as connection:
        rows = await connection.fetch(load("find", server.schema).first_in_line, *values)
    return tuple(sorted(FirstInLine(JobLine(tenant, queue), id, at) for tenant, queue, id, at in rows))
