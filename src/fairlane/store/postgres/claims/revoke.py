"""End claims because an operator says so (S72); condemn waiting jobs that are to be dead.

A running job changes under the lock of its row, a waiting one under that of its queue, as in `jobs.cancel`.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from fairlane.model.errors import StoreBusy
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import record_changes
from fairlane.model.lifecycle.states import WAITING, Because, State, because, is_finished
from fairlane.model.retry.decision import reconcile
from fairlane.model.retry.revoke import answer_revoke, settle_revoked
from fairlane.store.audit_entries import job_entries
from fairlane.store.contract.claims import RevokedJob, RevokeReply, RevokeRequest
from fairlane.store.postgres.claims.end_jobs import end_budgets, end_jobs, queues_at, settled
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.jobs.cancel import in_states, states_of, stop_waiting
from fairlane.store.postgres.journal import append_entries
from fairlane.store.postgres.rows import WIDTH, read_record
from fairlane.store.postgres.statements import load

_MAX_ROUNDS: Final = 10
"""How often a job may slip away, from waiting to running and back, while it is being revoked."""


async def revoke(server: Server, request: RevokeRequest) -> RevokeReply:
    """End the claims of these jobs; the model decides what becomes of each job.

    A job that is being settled is waited for, a moment. One that its handler ends in a transaction of its
    own, still open, cannot be revoked: `StoreBusy`.
    """
    answers: dict[UUID, RevokedJob] = {}
    for _ in range(_MAX_ROUNDS):
        states = await states_of(server, request, [id for id in request.ids if id not in answers])
        if not states:
            wanted = dict.fromkeys(request.ids)
            return RevokeReply(tuple(answers[id] for id in wanted if id in answers))
        for id, (_, state) in states.items():
            if is_finished(state) or (state in WAITING and request.how != "dead"):
                answers[id] = RevokedJob(id, "not_running", state)
        if request.how == "dead":
            for queue, ids in in_states(states, WAITING).items():
                reason = because(Because.CONDEMNED, request.reason)
                dead = await stop_waiting(server, queue, ids, State.DEAD, reason, operation=request.operation)
                answers |= {id: RevokedJob(id, "revoked", State.DEAD) for id in dead}
        running = [id for id, (_, state) in states.items() if state is State.RUNNING]
        answers |= await _end_running(server, request, running)
        for id in running:
            if id not in answers:
                await server.fetch(load("cancel", server.schema).wait_for_row, id)
    message = "some jobs change too fast to be revoked"
    raise StoreBusy(message)


async def _end_running(server: Server, request: RevokeRequest, ids: list[UUID]) -> dict[UUID, RevokedJob]:
    """End the claims of those of these jobs that run and that nobody is settling."""
    if not ids:
        return {}
    answers: dict[UUID, RevokedJob] = {}
    hints: set[str] = set()
    async with server.transaction() as connection:
        statement = load("settle", server.schema).claims_of
        rows = await connection.fetch(statement, server.now(), ids, request.scope.tenant)
        now, ends, gates = rows[0][WIDTH] if rows else 0, [], []
        changes: list[tuple[JobRecord, JobRecord]] = []
        for row in rows:
            job = read_record(row)
            answer = answer_revoke(job, request.how)
            state = job.state
            if answer == "revoked":
                settlement = settle_revoked(job, request.how, request.delay, request.reason)
                settlement = reconcile(job, settlement, now)
                ends.append(settled(settlement, request.attempts_kept))
                changes.append((job, record_changes.settled(job, settlement, now)))
                gates.append(row["gate"])
                hints.add(job.queue)
                state = ends[-1].state
            answers[job.id] = RevokedJob(job.id, answer, state)
        await end_jobs(connection, server.schema, now, ends)
        ended = [job for job, _ in changes]
        hints.update(await end_budgets(connection, server.schema, now, ended))
        entries = job_entries(request.operation, changes)
        await append_entries(connection, server.schema, now, "audit", entries)
        hints.update(await queues_at(connection, server.schema, gates))
    server.hint(hints)
    return answers
