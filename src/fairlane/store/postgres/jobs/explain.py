"""Explain why a job is not running: the first reason that holds, in the order of the contract."""

from __future__ import annotations

from typing import Any

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.policy.limits import Rate, is_below
from fairlane.model.policy.overrides import Subject, SubjectKind
from fairlane.store.contract.filters import explain_by_state
from fairlane.store.contract.jobs import ExplainRequest, Why
from fairlane.store.contract.registry import LIVE_WITHIN
from fairlane.store.policy_records import EVERYONE
from fairlane.store.postgres.claims.budget_reports import count_reports
from fairlane.store.postgres.connection import Connection, Server
from fairlane.store.postgres.policies.policy_snapshot import PolicySnapshot, read_policy_snapshot
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.rows import read_record
from fairlane.store.postgres.statements import load
from fairlane.store.registry_records import read_worker


async def explain(server: Server, request: ExplainRequest) -> Why | None:
    """Return the reason; None if there is no such job within the scope."""
    sql = load("find", server.schema)
    async with read_transaction(server, in_order=True) as connection:
        row = await connection.fetchrow(sql.by_id, [request.id])
        job = None if row is None else read_record(row)
        if job is None or not request.scope.covers(job.tenant):
            return None
        why = explain_by_state(job)
        if why is not None:
            return why
        subjects = (
            Subject(SubjectKind.QUEUE, job.queue),
            Subject(SubjectKind.TENANT, job.tenant),
            Subject(SubjectKind.TASK, job.task),
        )
        snapshot = await read_policy_snapshot(server, connection, subjects)
        gate = snapshot.task(job.task).gate
        if gate is not None:
            snapshot = await read_policy_snapshot(
                server, connection, (*subjects, Subject(SubjectKind.GATE, gate))
            )
        return await _Reasons(server, connection, sql, snapshot, job, subjects).first()


class _Reasons:
    """What may hold one ready job back."""

    def __init__(
        self,
        server: Server,
        connection: Connection,
        sql: Any,
        snapshot: PolicySnapshot,
        job: JobRecord,
        subjects: tuple[Subject, ...],
    ) -> None:
        self._server = server
        self._connection = connection
        self._sql = sql
        self._snapshot = snapshot
        self._job = job
        self._subjects = subjects
        self._ahead = 0
        self._breakers = load("breakers", server.schema)

    async def first(self) -> Why:
        """Return the first reason that holds."""
        job = self._job
        values = (job.queue, job.tenant, job.sort_key, job.id)
        self._ahead = await self._connection.fetchval(self._sql.ahead, *values)
        for subject in self._subjects:
            pause = self._snapshot.paused(subject)
            if pause is not None:
                return Why("paused", str(subject), pause.until, self._ahead)
        for look in (self._queue, self._tenant, self._task):
            why = await look()
            if why is not None:
                return why
        workers = await self._connection.fetch(self._sql.live, self._snapshot.now - LIVE_WITHIN)
        is_served = any(job.queue in read_worker(record).queues for (record,) in workers)
        return Why("turn" if is_served else "no_worker", str(self._subjects[0]), None, self._ahead)

    async def _queue(self) -> Why | None:
        subject = self._subjects[0]
        return await self._rate(self._snapshot.queue(subject.name).rate, subject)

    async def _tenant(self) -> Why | None:
        queue, tenant, _ = self._subjects
        limits = self._snapshot.limits(queue.name, tenant.name)
        layers = (tenant, EVERYONE, queue)
        running = await self._connection.fetchval(self._sql.running_of, queue.name, tenant.name)
        if not is_below(running, limits.running):
            return Why("running_limit", str(tenant), self._snapshot.ends(*layers), self._ahead)
        if limits.rate is None:
            return None
        stored = await self._connection.fetchrow(self._sql.tenant_queue, queue.name, tenant.name)
        return self._wait(limits.rate, stored, layers)

    async def _task(self) -> Why | None:
        subject = self._subjects[2]
        rules = self._snapshot.task(subject.name)
        why = None if rules.breaker is None else await self._breaker(rules.breaker)
        why = why or await self._rate(rules.rate, subject)
        if why is None and rules.gate is not None:
            why = await self._gate(rules.gate)
        return why if why is not None or rules.budget is None else await self._budget(rules.budget)

    async def _budget(self, name: str) -> Why | None:
        """Ask what a claim would meet. What was reported is counted first, outside of this transaction."""
        await count_reports(self._server)
        statement = load("budgets", self._server.schema).block
        ((reason, until),) = await self._server.fetch(statement, self._server.now(), name, self._job.tenant)
        subject = Subject(SubjectKind.BUDGET, name)
        return None if reason is None else Why("budget", str(subject), until, self._ahead)

    async def _breaker(self, name: str) -> Why | None:
        values = (self._snapshot.now, name, self._job.tenant)
        held = await self._connection.fetchrow(self._breakers.holding, *values)
        return None if held is None else Why("breaker", held[0], held[1], self._ahead)

    async def _gate(self, name: str) -> Why | None:
        subject = Subject(SubjectKind.GATE, name)
        rules = self._snapshot.gate(name)
        if not is_below(await self._connection.fetchval(self._sql.at_gate, name), rules.limit):
            return Why("gate", str(subject), self._snapshot.ends(subject), self._ahead)
        return await self._rate(rules.rate, subject)

    async def _rate(self, rate: Rate | None, subject: Subject) -> Why | None:
        if rate is None:
            return None
        stored = await self._connection.fetchrow(self._sql.rate_state, subject.kind.value, subject.name)
        return self._wait(rate, stored, (subject,))

    def _wait(self, rate: Rate, stored: Any, layers: tuple[Subject, ...]) -> Why | None:
        """Return a wait until the rate allows a start, or until an override of it ends."""
        next_allowed_at, rate_id = stored or (0, "")
        free_at: Instant = rate.free_at(rate.next_allowed_from(rate_id, next_allowed_at))
        if free_at <= self._snapshot.now:
            return None
        ends = self._snapshot.ends(*layers)
        return Why("rate", str(layers[0]), free_at if ends is None else min(free_at, ends), self._ahead)
