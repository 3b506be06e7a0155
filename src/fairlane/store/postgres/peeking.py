"""Show the next jobs in the order of a claim: claim them for nobody and take it back (S65)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from fairlane.model.job import JobRecord
from fairlane.store.contract.claims import Wish
from fairlane.store.contract.jobs import PeekRequest
from fairlane.store.contract.request import check_page
from fairlane.store.postgres.claiming import Ask, claim_on
from fairlane.store.postgres.rows import hot_record
from fairlane.store.postgres.statements import load

if TYPE_CHECKING:
    from fairlane.store.postgres.connect import Connection, Server


async def peek(server: Server, request: PeekRequest) -> tuple[JobRecord, ...]:
    """See the contract: as many calls as one claim's bounds demand, under one mutex."""
    check_page(request.most)
    sql = load("peek", server.schema)
    async with server.transaction() as connection:
        await connection.fetch(sql.mutex, request.queue)  # kept when the rest is taken back
        await connection.execute("SAVEPOINT before")
        ids = await _claim_all(connection, server, request)
        await connection.execute("ROLLBACK TO SAVEPOINT before")
        jobs = {job.id: job for job in map(hot_record, await connection.fetch(sql.jobs, ids))}
    return tuple(jobs[id] for id in ids)


async def _claim_all(connection: Connection, server: Server, request: PeekRequest) -> list[UUID]:
    ids: list[UUID] = []
    is_partial = True
    while is_partial and len(ids) < request.most:
        left = request.most - len(ids)
        ask = Ask(wish=Wish(request.queue, left), total=left, only=request.scope.tenant)
        handout = await claim_on(connection, server, ask)
        ids += [one.job.id for one in handout.claims]
        is_partial = handout.is_partial
    return ids
