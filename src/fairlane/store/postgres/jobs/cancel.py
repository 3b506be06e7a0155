"""Cancel jobs, or move them to the dead letters: end those that wait, ask running ones to stop (S30, S53).

Waiting jobs change under the lock of their queue. Each id stands alone: ids are grouped by queue only to
take its lock once. Purge, expire and forget end waiting jobs by the same way.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from fairlane.model.errors import StoreBusy
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.journal.operations import Operation
from fairlane.model.lifecycle import record_changes
from fairlane.model.lifecycle.states import WAITING, Because, CancelReply, State, because, is_finished
from fairlane.store.audit_entries import job_entries
from fairlane.store.contract.jobs import StopRequest
from fairlane.store.contract.request import Request
from fairlane.store.postgres.claims.end_jobs import end_jobs, stopped
from fairlane.store.postgres.connection import Connection, Server
from fairlane.store.postgres.journal import append_entries
from fairlane.store.postgres.rows import plain_uuid, read_record
from fairlane.store.postgres.statements import load

_MAX_ROUNDS: Final = 10
"""How often a job may slip away, from waiting to running and back, while it is being cancelled."""


class LockedQueue(NamedTuple):
    """A connection whose transaction holds a queue's lock, with all deltas applied, and the time."""

    connection: Connection
    at: Instant


@asynccontextmanager
async def locked_queue(server: Server, queue: str) -> AsyncIterator[LockedQueue]:
    """Hold the lock of a queue; deltas written meanwhile are applied at the end."""
    sql = load("cancel", server.schema)
    async with server.transaction() as connection:
        at = await connection.fetchval(sql.lock_and_apply, server.now(), queue)
        yield LockedQueue(connection, at)
        await connection.fetch(sql.apply_all_deltas, at, queue)


async def waiting(server: Server, connection: Connection, ids: Collection[UUID]) -> list[JobRecord]:
    """Return those of these jobs that wait, in the order of the ids; under the queue's lock they stay so."""
    rows = await connection.fetch(load("cancel", server.schema).waiting, list(ids))
    found = {job.id: job for job in map(read_record, rows)}
    return [found[id] for id in ids if id in found]


async def stop_waiting(
    server: Server,
    queue: str,
    ids: Collection[UUID],
    state: State,
    reason: str,
    is_meant: Callable[[JobRecord, Instant], bool] | None = None,
    *,
    operation: Operation | None = None,
) -> list[UUID]:
    """End the given jobs of a queue that still wait; return their ids."""
    async with locked_queue(server, queue) as (connection, at):
        jobs = await waiting(server, connection, ids)
        jobs = [job for job in jobs if is_meant is None or is_meant(job, at)]
        await end_jobs(connection, server.schema, at, [stopped(job, state, reason) for job in jobs])
        changes = ((job, record_changes.stopped(job, state, reason, at)) for job in jobs)
        await append_entries(connection, server.schema, at, "audit", job_entries(operation, changes))
    return [job.id for job in jobs]


async def cancel(server: Server, request: StopRequest) -> Mapping[UUID, CancelReply]:
    """Cancel what waits, ask what runs to stop.

    A job that is being settled is waited for, a moment; then it has finished, or waits again. One that its
    handler ends in a transaction of its own, still open, cannot be asked: `StoreBusy`.
    """
    reason = because(Because.ASKED, request.reason)
    replies: dict[UUID, CancelReply] = {}
    for _ in range(_MAX_ROUNDS):
        left = [id for id in dict.fromkeys(request.ids) if id not in replies]
        states = await states_of(server, request, left)
        if not states:
            return {id: replies[id] for id in request.ids if id in replies}
        replies |= {id: CancelReply.FINISHED for id, (_, state) in states.items() if is_finished(state)}
        for queue, ids in in_states(states, WAITING).items():
            cancelled = await stop_waiting(
                server, queue, ids, State.CANCELLED, reason, operation=request.operation
            )
            replies |= dict.fromkeys(cancelled, CancelReply.CANCELLED)
        running = [id for id, (_, state) in states.items() if state is State.RUNNING]
        asked = await ask_to_stop(server, running, reason, request.operation)
        replies |= dict.fromkeys(asked, CancelReply.REQUESTED)
        for id in running:
            if id not in asked:
                await server.fetch(load("cancel", server.schema).wait_for_row, id)
    message = "some jobs change too fast to be cancelled"
    raise StoreBusy(message)


async def ask_to_stop(
    server: Server, ids: list[UUID], reason: str, operation: Operation | None = None
) -> set[UUID]:
    """Flag running jobs and wake their workers; the first reason stays. Return the jobs reached."""
    if not ids:
        return set()
    sql = load("cancel", server.schema)
    if operation is None:
        ((asked, workers),) = await server.fetch(sql.ask_to_stop, ids, reason)
    else:
        async with server.transaction() as connection:
            # Only those that are locked now are flagged: of them it is known what they were.
            running = [read_record(row) for row in await connection.fetch(sql.lock_running, sorted(ids))]
            locked = [job.id for job in running]
            ((asked, workers),) = await connection.fetch(sql.ask_to_stop, locked, reason)
            changes = [(job, _flagged(job, reason)) for job in running if not job.is_cancel_asked]
            entries = job_entries(operation, changes)
            await append_entries(connection, server.schema, server.now(), "audit", entries)
    server.hint((), workers or ())
    return set(map(plain_uuid, asked or ()))


def _flagged(job: JobRecord, reason: str) -> JobRecord:
    return msgspec.structs.replace(job, is_cancel_asked=True, because=reason)


async def condemn(server: Server, request: StopRequest) -> tuple[UUID, ...]:
    """Move waiting jobs to the dead letters."""
    reason = because(Because.CONDEMNED, request.reason)
    states = await states_of(server, request, request.ids)
    moved: set[UUID] = set()
    for queue, ids in in_states(states, WAITING).items():
        moved |= set(await stop_waiting(server, queue, ids, State.DEAD, reason, operation=request.operation))
    return tuple(id for id in dict.fromkeys(request.ids) if id in moved)


async def states_of(server: Server, request: Request, ids: Iterable[UUID]) -> dict[UUID, tuple[str, State]]:
    """Return the queue and state of those of these jobs that the scope reaches."""
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return {}
    rows = await server.fetch(load("cancel", server.schema).states_of, wanted, request.scope.tenant)
    found = {plain_uuid(id): (queue, State(state)) for id, queue, state in rows}
    return {id: found[id] for id in wanted if id in found}


def in_states(jobs: dict[UUID, tuple[str, State]], states: Collection[State]) -> dict[str, list[UUID]]:
    """Return the jobs that are in these states, by queue."""
    return by_queue((id, queue) for id, (queue, state) in jobs.items() if state in states)


def by_queue(jobs: Iterable[tuple[UUID, str]]) -> dict[str, list[UUID]]:
    """Group ids by their queue."""
    queues: dict[str, list[UUID]] = {}
    for id, queue in jobs:
        queues.setdefault(queue, []).append(id)
    return queues
