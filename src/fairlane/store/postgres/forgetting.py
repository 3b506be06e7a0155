"""Erase what a tenant's jobs carried and said, and leave that they were (S52)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import WAITING, Because, Home, State, because, home
from fairlane.model.moves import erased
from fairlane.store.contract.request import READ_MOST, Place, from_cursor, to_cursor
from fairlane.store.contract.upkeep import ForgetReply, ForgetRequest
from fairlane.store.postgres.connect import Server
from fairlane.store.postgres.moving import ask_to_stop, stop_waiting
from fairlane.store.postgres.reading import reading
from fairlane.store.postgres.rows import attempts_value, finished_record, plain_uuid
from fairlane.store.postgres.statements import load


async def forget(server: Server, request: ForgetRequest) -> ForgetReply:
    """Take one pass: ask what runs to stop, cancel what waits, then empty all that has ended."""
    tenant = request.scope.tenant
    if tenant is None:
        message = "forget needs the scope of one tenant"
        raise ValueError(message)
    place = Place(0, UUID(int=0)) if request.cursor is None else from_cursor(request.cursor)
    sql = load("upkeep", server.schema)
    async with reading(server, in_order=True) as connection:
        running = [plain_uuid(row[0]) for row in await connection.fetch(sql.running_of, tenant)]
        values = (tenant, place.enqueued_at, place.id, READ_MOST + 1)
        page = await connection.fetch(sql.contents_of, *values)
    left = [row for row in page[:READ_MOST] if row["is_left"]]
    await ask_to_stop(server, running, because(Because.ASKED, request.reason))
    now = left[: request.most]
    await _stop(server, request, now)
    await _empty(server, sql, [row["id"] for row in now])
    last = left[request.most - 1] if len(left) > request.most else None
    if last is None and len(page) > READ_MOST:
        last = page[READ_MOST - 1]
    if last is not None:
        cursor = to_cursor(Place(last["enqueued_at"], plain_uuid(last["id"])))
        return ForgetReply(len(now), len(running), cursor)
    async with reading(server) as connection:
        await connection.execute(sql.keys_of, tenant)
    return ForgetReply(len(now), len(running))


async def _stop(server: Server, request: ForgetRequest, rows: Sequence[Any]) -> None:
    """Cancel those of these jobs that still wait, a queue at a time."""
    waiting: dict[str, list[UUID]] = defaultdict(list)
    for row in rows:
        if State(row["state"]) in WAITING:
            waiting[row["queue"]].append(plain_uuid(row["id"]))
    word = because(Because.PURGED, request.reason)
    for queue, ids in sorted(waiting.items()):
        await stop_waiting(server, queue, ids, State.CANCELLED, word)


async def _empty(server: Server, sql: Any, ids: list[UUID]) -> None:
    """Empty the finished jobs among these; one that was claimed meanwhile is met by a later pass."""
    async with reading(server) as connection:
        rows = await connection.fetch(sql.finished, ids)
        jobs = [erased(finished_record(row)) for row in rows]
        await connection.execute(sql.erase_history, _husks(jobs, Home.HISTORY))
        await connection.execute(sql.erase_dead, _husks(jobs, Home.DEAD))


def _husks(jobs: list[JobRecord], where: Home) -> str:
    husks = [
        {
            "id": job.id,
            "settled_at": job.settled_at,
            "because": job.because,
            "attempts": attempts_value(job),
        }
        for job in jobs
        if home(job.state) is where
    ]
    return msgspec.json.encode(husks).decode()
