"""Compare places in line and counters of a tenant queue with its jobs, and restore them (S90)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlane.store.contract.repair import (
    MAX_COMPARED,
    Flaw,
    RepairReply,
    RepairRequest,
    repair_entries,
    repair_reply,
)
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.jobs.cancel import locked_queue
from fairlane.store.postgres.journal import append_entries
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.rows import plain_uuid
from fairlane.store.postgres.statements import load


async def repair(server: Server, request: RepairRequest) -> RepairReply:
    """Compare at one instant; restore under the queue's lock."""
    if not request.scope.covers(request.tenant):
        return RepairReply(0)
    sql = load("upkeep", server.schema)
    names = (request.queue, request.tenant)
    async with read_transaction(server, in_order=True) as connection:
        jobs = await connection.fetchval(sql.unfinished_count, *names, MAX_COMPARED + 1)
        if jobs > MAX_COMPARED:
            return RepairReply(None)
        rows = await connection.fetch(sql.flaws, *names)
    if not rows or not request.restores:
        return repair_reply(request, jobs, map(_flaw, rows))
    async with locked_queue(server, request.queue) as (connection, at):
        jobs = await connection.fetchval(sql.unfinished_count, *names, MAX_COMPARED + 1)
        reply = repair_reply(request, jobs, map(_flaw, await connection.fetch(sql.flaws, *names)))
        if reply.is_restored:
            await connection.fetch(sql.restore, *names)
            entries = repair_entries(request.operation, request)
            await append_entries(connection, server.schema, at, "audit", entries)
    return reply


def _flaw(row: Sequence[Any]) -> Flaw:
    where, stored, right, job = row
    return Flaw(where, stored, right, None if job is None else plain_uuid(job))
