"""Forget a tenant: scrub the contents of its jobs and leave that they existed (S52)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.record_changes import scrubbed
from fairlane.model.lifecycle.states import WAITING, Because, State, because
from fairlane.model.review import scrubbed_review
from fairlane.store.contract.request import MAX_ROWS_READ, JobPosition, from_cursor, to_cursor
from fairlane.store.contract.upkeep import ForgetReply, ForgetRequest
from fairlane.store.postgres.budgets import forget_spender
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.dead.letters import read_letter, write_reviews
from fairlane.store.postgres.history import forget_batches
from fairlane.store.postgres.jobs.cancel import ask_to_stop, stop_waiting
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.rows import attempts_value, plain_uuid, read_record
from fairlane.store.postgres.statements import load


async def forget(server: Server, request: ForgetRequest) -> ForgetReply:
    """Take one pass: ask running jobs to stop, cancel waiting ones, then scrub all that have finished."""
    tenant = request.scope.tenant
    if tenant is None:
        message = "forget needs the scope of one tenant"
        raise ValueError(message)
    position = JobPosition(0, UUID(int=0)) if request.cursor is None else from_cursor(request.cursor)
    sql = load("upkeep", server.schema)
    async with read_transaction(server, in_order=True) as connection:
        running = [plain_uuid(row[0]) for row in await connection.fetch(sql.running_of, tenant)]
        values = (tenant, position.enqueued_at, position.id, MAX_ROWS_READ + 1)
        page = await connection.fetch(sql.contents_of, *values)
    left = [row for row in page[:MAX_ROWS_READ] if row["is_left"]]
    await ask_to_stop(server, running, because(Because.ASKED, request.reason))
    now = left[: request.limit]
    await _stop(server, request, now)
    await _scrub(server, sql, [row["id"] for row in now])
    last = left[request.limit - 1] if len(left) > request.limit else None
    if last is None and len(page) > MAX_ROWS_READ:
        last = page[MAX_ROWS_READ - 1]
    if last is not None:
        cursor = to_cursor(JobPosition(last["enqueued_at"], plain_uuid(last["id"])))
        return ForgetReply(len(now), len(running), cursor)
    async with read_transaction(server) as connection:
        await connection.execute(sql.keys_of, tenant)
        await forget_batches(connection, server.schema, tenant)
    await forget_spender(server, tenant, is_running=bool(running))
    return ForgetReply(len(now), len(running))


async def _stop(server: Server, request: ForgetRequest, rows: Sequence[Any]) -> None:
    """Cancel those of these jobs that still wait, queue by queue."""
    waiting: dict[str, list[UUID]] = defaultdict(list)
    for row in rows:
        if State(row["state"]) in WAITING:
            waiting[row["queue"]].append(plain_uuid(row["id"]))
    reason = because(Because.PURGED, request.reason)
    for queue, ids in sorted(waiting.items()):
        await stop_waiting(server, queue, ids, State.CANCELLED, reason)


async def _scrub(server: Server, sql: Any, ids: list[UUID]) -> None:
    """Scrub the finished jobs among these; one that was claimed meanwhile is met by a later pass."""
    async with read_transaction(server) as connection:
        finished = [read_record(row) for row in await connection.fetch(sql.finished, ids)]
        await connection.execute(sql.erase_history, _scrubbed_rows(finished))
        letters = [read_letter(row) for row in await connection.fetch(sql.letters, ids)]
        await connection.execute(sql.erase_dead, _scrubbed_rows(letter.job for letter in letters))
        reviews = {letter.job.id: scrubbed_review(letter.review) for letter in letters if letter.review.notes}
        await write_reviews(connection, server.schema, reviews)


def _scrubbed_rows(jobs: Iterable[JobRecord]) -> str:
    rows = [
        {
            "id": job.id,
            "settled_at": job.settled_at,
            "because": job.because,
            "attempts": attempts_value(job),
        }
        for job in map(scrubbed, jobs)
    ]
    return msgspec.json.encode(rows).decode()
