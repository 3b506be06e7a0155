"""Peek: show the next jobs in the order of a claim, by claiming them and rolling that back (S65)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from fairlane.model.job import JobRecord
from fairlane.store.contract.claims import QueueRequest
from fairlane.store.contract.jobs import PeekRequest
from fairlane.store.contract.request import check_page
from fairlane.store.postgres.claims.claim import QueueClaim, claim_queue
from fairlane.store.postgres.rows import read_record
from fairlane.store.postgres.statements import load

if TYPE_CHECKING:
    from fairlane.store.postgres.connection import Connection, Server


async def peek(server: Server, request: PeekRequest) -> tuple[JobRecord, ...]:
    """Return the next jobs: as many claims as one claim's bounds demand, under one queue lock."""
    check_page(request.limit)
    async with server.transaction() as connection:
        # Before the savepoint: the lock stays when the claims are rolled back.
        await connection.fetch(load("claim", server.schema).lock_queue, request.queue)
        await connection.execute("SAVEPOINT before")
        ids = await _claim_all(connection, server, request)
        await connection.execute("ROLLBACK TO SAVEPOINT before")
        rows = await connection.fetch(load("cancel", server.schema).waiting, ids)
        jobs = {job.id: job for job in map(read_record, rows)}
    return tuple(jobs[id] for id in ids)


async def _claim_all(connection: Connection, server: Server, request: PeekRequest) -> list[UUID]:
    ids: list[UUID] = []
    is_partial = True
    while is_partial and len(ids) < request.limit:
        left = request.limit - len(ids)
        call = QueueClaim(
            queue_request=QueueRequest(request.queue, left), total=left, only=request.scope.tenant
        )
        reply = await claim_queue(connection, server, call)
        ids += [one.job.id for one in reply.claims]
        is_partial = reply.is_partial
    return ids
