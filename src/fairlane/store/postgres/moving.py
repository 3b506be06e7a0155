"""Change jobs while they wait, under the mutex of their queue; ask running ones to stop (S30, S53, S64).

Each id stands alone: ids are grouped by queue only to take its mutex once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
from msgspec import UNSET

from fairlane.model.errors import StoreBusy
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import (
    TRANSITIONS,
    WAITING,
    Because,
    CancelReply,
    Event,
    State,
    because,
    is_finished,
)
from fairlane.model.moves import hurried
from fairlane.model.priority import sort_key
from fairlane.store.contract.jobs import EditReply, EditRequest, RunNowRequest, StopRequest, check_edit
from fairlane.store.contract.request import Request
from fairlane.store.postgres.connect import Connection, Server
from fairlane.store.postgres.ending import end_jobs, stopped
from fairlane.store.postgres.rows import hot_record, plain_uuid
from fairlane.store.postgres.statements import load

_ROUNDS: Final = 10
"""How often a job may slip away, from waiting to running and back, while it is being cancelled."""


class Held(NamedTuple):
    """A queue under its mutex, everything folded, and what time it is."""

    link: Connection
    at: Instant


@asynccontextmanager
async def held(server: Server, queue: str) -> AsyncIterator[Held]:
    """Hold a queue; what is changed meanwhile is folded at the end."""
    sql = load("moving", server.schema)
    async with server.transaction() as link:
        at = await link.fetchval(sql.enter, server.now(), queue)
        yield Held(link, at)
        await link.fetch(sql.fold, at, queue)


async def waiting(server: Server, link: Connection, ids: Collection[UUID]) -> list[JobRecord]:
    """Give those of these jobs that wait, in the order of the ids; under the mutex they stay as they are."""
    rows = await link.fetch(load("moving", server.schema).waiting, list(ids))
    found = {job.id: job for job in map(hot_record, rows)}
    return [found[id] for id in ids if id in found]


async def stop_waiting(
    server: Server,
    queue: str,
    ids: Collection[UUID],
    state: State,
    word: str,
    is_meant: Callable[[JobRecord, Instant], bool] | None = None,
) -> list[UUID]:
    """End those of a queue's jobs that still wait, and are meant; name them."""
    async with held(server, queue) as (link, at):
        jobs = [job for job in await waiting(server, link, ids) if is_meant is None or is_meant(job, at)]
        await end_jobs(link, server.schema, at, [stopped(job, state, word) for job in jobs])
    return [job.id for job in jobs]


async def cancel(server: Server, request: StopRequest) -> Mapping[UUID, CancelReply]:
    """Cancel what waits, ask what runs.

    A job that is just being settled is waited for, a moment; then it is finished, or waits again. One that
    its handler ends in a transaction of its own, still open, cannot be asked: `StoreBusy`.
    """
    word = because(Because.ASKED, request.reason)
    replies: dict[UUID, CancelReply] = {}
    for _ in range(_ROUNDS):
        places = await _places(
            server, request, [id for id in dict.fromkeys(request.ids) if id not in replies]
        )
        if not places:
            return {id: replies[id] for id in request.ids if id in replies}
        replies |= {id: CancelReply.FINISHED for id, (_, state) in places.items() if is_finished(state)}
        for queue, ids in _in_states(places, WAITING).items():
            stopped_ids = await stop_waiting(server, queue, ids, State.CANCELLED, word)
            replies |= dict.fromkeys(stopped_ids, CancelReply.CANCELLED)
        running = [id for id, (_, state) in places.items() if state is State.RUNNING]
        asked = await ask_to_stop(server, running, word)
        replies |= dict.fromkeys(asked, CancelReply.REQUESTED)
        for id in running:
            if id not in asked:
                await server.fetch(load("moving", server.schema).wait_for, id)
    message = "some jobs change too fast to be cancelled"
    raise StoreBusy(message)


async def ask_to_stop(server: Server, ids: list[UUID], word: str) -> set[UUID]:
    """Set the flag of running jobs and tell their workers; the first reason stays. Name who was reached."""
    if not ids:
        return set()
    ((asked, workers),) = await server.fetch(load("moving", server.schema).ask_to_stop, ids, word)
    server.hint((), workers or ())
    return set(map(plain_uuid, asked or ()))


async def condemn(server: Server, request: StopRequest) -> tuple[UUID, ...]:
    """Move waiting jobs to the dead letters."""
    word = because(Because.CONDEMNED, request.reason)
    places = await _places(server, request, request.ids)
    moved: set[UUID] = set()
    for queue, ids in _in_states(places, WAITING).items():
        moved |= set(await stop_waiting(server, queue, ids, State.DEAD, word))
    return tuple(id for id in dict.fromkeys(request.ids) if id in moved)


async def run_now(server: Server, request: RunNowRequest) -> tuple[UUID, ...]:
    """Make delayed jobs ready."""
    places = await _places(server, request, request.ids)
    moved: set[UUID] = set()
    for queue, ids in _in_states(places, {State.DELAYED}).items():
        async with held(server, queue) as (link, at):
            jobs = await waiting(server, link, ids)
            due = [job.id for job in jobs if (job.state, Event.RUN_NOW) in TRANSITIONS]
            await link.fetch(load("moving", server.schema).hurry, at, due)
        moved |= set(due)
        server.hint([queue])
    return tuple(id for id in dict.fromkeys(request.ids) if id in moved)


async def edit(server: Server, request: EditRequest) -> EditReply:
    """Change a waiting job in place."""
    check_edit(request)
    places = await _places(server, request, (request.id,))
    if request.id not in places:
        return EditReply("not_found")
    queue, state = places[request.id]
    if state not in WAITING:
        return EditReply("not_waiting")
    async with held(server, queue) as (link, at):
        jobs = await waiting(server, link, (request.id,))
        if not jobs:
            return EditReply("not_waiting")
        if request.run_at is not UNSET and jobs[0].state is not State.DELAYED:
            return EditReply("not_delayed")
        job = _edited(jobs[0], request, at)
        values = (job.state.value, job.because, job.run_at, job.sort_key, job.priority, job.expires_at)
        body = (list(job.tags) or None, job.payload, job.checksum, job.version)
        await link.fetch(load("moving", server.schema).edit, job.id, *values, *body)
    server.hint([queue])
    return EditReply("edited", job)


def _edited(job: JobRecord, request: EditRequest, at: Instant) -> JobRecord:
    names = ("priority", "run_at", "expires_at", "tags", "payload", "checksum", "version")
    given = {name: getattr(request, name) for name in names}
    job = msgspec.structs.replace(job, **{name: value for name, value in given.items() if value is not UNSET})
    if request.run_at is not UNSET and job.run_at <= at:
        job = hurried(job, at)
    return msgspec.structs.replace(job, sort_key=sort_key(job.run_at, job.priority))


async def _places(server: Server, request: Request, ids: Iterable[UUID]) -> dict[UUID, tuple[str, State]]:
    """Say in which queue and state those of these jobs are that the scope reaches."""
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return {}
    rows = await server.fetch(load("moving", server.schema).whereabouts, wanted, request.scope.tenant)
    found = {plain_uuid(id): (queue, State(state)) for id, queue, state in rows}
    return {id: found[id] for id in wanted if id in found}


def _in_states(places: dict[UUID, tuple[str, State]], states: Collection[State]) -> dict[str, list[UUID]]:
    return by_queue((id, queue) for id, (queue, state) in places.items() if state in states)


def by_queue(jobs: Iterable[tuple[UUID, str]]) -> dict[str, list[UUID]]:
    """Group ids by their queue."""
    queues: dict[str, list[UUID]] = {}
    for id, queue in jobs:
        queues.setdefault(queue, []).append(id)
    return queues
