"""Edit a waiting job in place, or make delayed jobs run now (S53, S64)."""

from __future__ import annotations

from uuid import UUID

import msgspec
from msgspec import UNSET

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.record_changes import due_now
from fairlane.model.lifecycle.states import TRANSITIONS, WAITING, Event, State
from fairlane.model.scheduling.priority import sort_key
from fairlane.store.audit_entries import job_entries
from fairlane.store.contract.jobs import EditReply, EditRequest, RunNowRequest, check_edit
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.jobs.cancel import in_states, locked_queue, states_of, waiting
from fairlane.store.postgres.journal import append_entries
from fairlane.store.postgres.statements import load


async def run_now(server: Server, request: RunNowRequest) -> tuple[UUID, ...]:
    """Make delayed jobs ready."""
    states = await states_of(server, request, request.ids)
    moved: set[UUID] = set()
    for queue, ids in in_states(states, {State.DELAYED}).items():
        async with locked_queue(server, queue) as (connection, at):
            jobs = await waiting(server, connection, ids)
            due = {job.id: job for job in jobs if (job.state, Event.RUN_NOW) in TRANSITIONS}
            await connection.fetch(load("cancel", server.schema).run_now, at, list(due))
            entries = job_entries(request.operation, ((job, due_now(job, at)) for job in due.values()))
            await append_entries(connection, server.schema, at, "audit", entries)
        moved |= due.keys()
        server.hint([queue])
    return tuple(id for id in dict.fromkeys(request.ids) if id in moved)


async def edit(server: Server, request: EditRequest) -> EditReply:
    """Change a waiting job in place."""
    check_edit(request)
    states = await states_of(server, request, (request.id,))
    if request.id not in states:
        return EditReply("not_found")
    queue, state = states[request.id]
    if state not in WAITING:
        return EditReply("not_waiting")
    async with locked_queue(server, queue) as (connection, at):
        jobs = await waiting(server, connection, (request.id,))
        if not jobs:
            return EditReply("not_waiting")
        if request.run_at is not UNSET and jobs[0].state is not State.DELAYED:
            return EditReply("not_delayed")
        job = _edited(jobs[0], request, at)
        values = (job.state.value, job.because, job.run_at, job.sort_key, job.priority, job.expires_at)
        body = (list(job.tags) or None, job.payload, job.checksum, job.version)
        await connection.fetch(load("cancel", server.schema).edit, job.id, *values, *body)
        entries = job_entries(request.operation, [(jobs[0], job)])
        await append_entries(connection, server.schema, at, "audit", entries)
    server.hint([queue])
    return EditReply("edited", job)


def _edited(job: JobRecord, request: EditRequest, at: Instant) -> JobRecord:
    names = ("priority", "run_at", "expires_at", "tags", "payload", "checksum", "version")
    given = {name: getattr(request, name) for name in names}
    job = msgspec.structs.replace(job, **{name: value for name, value in given.items() if value is not UNSET})
    if request.run_at is not UNSET and job.run_at <= at:
        job = due_now(job, at)
    return msgspec.structs.replace(job, sort_key=sort_key(job.run_at, job.priority))
