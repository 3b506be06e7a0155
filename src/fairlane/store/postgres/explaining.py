"""Say why a job is not running, in the order of the contract: the first reason that holds answers."""

from __future__ import annotations

from typing import Any

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.layers import Kind, Subject
from fairlane.model.limits import Rate, has_room
from fairlane.store.contract.jobs import ExplainRequest, Why
from fairlane.store.contract.reading import explain_by_state
from fairlane.store.contract.registry import LIVE_WITHIN
from fairlane.store.policy import EVERYONE
from fairlane.store.postgres.book import Book, open_book
from fairlane.store.postgres.cards import read_card
from fairlane.store.postgres.connect import Connection, Server
from fairlane.store.postgres.reading import reading
from fairlane.store.postgres.rows import whole_record
from fairlane.store.postgres.statements import load


async def explain(server: Server, request: ExplainRequest) -> Why | None:
    """Look for the reason; None if there is no such job within the scope."""
    sql = load("find", server.schema)
    async with reading(server, in_order=True) as connection:
        row = await connection.fetchrow(sql.by_id, [request.id])
        job = None if row is None else whole_record(row)
        if job is None or not request.scope.covers(job.tenant):
            return None
        why = explain_by_state(job)
        if why is not None:
            return why
        subjects = (
            Subject(Kind.QUEUE, job.queue),
            Subject(Kind.TENANT, job.tenant),
            Subject(Kind.TASK, job.task),
        )
        book = await open_book(server, connection, subjects)
        gate = book.task(job.task).gate
        if gate is not None:
            book = await open_book(server, connection, (*subjects, Subject(Kind.GATE, gate)))
        return await _Reasons(connection, sql, book, job, subjects).first()


class _Reasons:
    """What may hold one ready job."""

    def __init__(
        self, connection: Connection, sql: Any, book: Book, job: JobRecord, subjects: tuple[Subject, ...]
    ) -> None:
        self._connection = connection
        self._sql = sql
        self._book = book
        self._job = job
        self._subjects = subjects
        self._ahead = 0

    async def first(self) -> Why:
        """Give the first reason that holds."""
        job = self._job
        values = (job.queue, job.tenant, job.sort_key, job.id)
        self._ahead = await self._connection.fetchval(self._sql.ahead, *values)
        for subject in self._subjects:
            pause = self._book.paused(subject)
            if pause is not None:
                return Why("paused", str(subject), pause.until, self._ahead)
        for look in (self._queue, self._tenant, self._task):
            why = await look()
            if why is not None:
                return why
        cards = await self._connection.fetch(self._sql.live, self._book.now - LIVE_WITHIN)
        is_served = any(job.queue in read_card(card).queues for (card,) in cards)
        return Why("turn" if is_served else "no_worker", str(self._subjects[0]), None, self._ahead)

    async def _queue(self) -> Why | None:
        subject = self._subjects[0]
        return await self._rate(self._book.queue(subject.name).rate, subject)

    async def _tenant(self) -> Why | None:
        queue, tenant, _ = self._subjects
        limits = self._book.limits(queue.name, tenant.name)
        layers = (tenant, EVERYONE, queue)
        running = await self._connection.fetchval(self._sql.running_of, queue.name, tenant.name)
        if not has_room(running, limits.running):
            return Why("running_limit", str(tenant), self._book.ends(*layers), self._ahead)
        if limits.rate is None:
            return None
        kept = await self._connection.fetchrow(self._sql.turn, queue.name, tenant.name)
        return self._wait(limits.rate, kept, layers)

    async def _task(self) -> Why | None:
        subject = self._subjects[2]
        rules = self._book.task(subject.name)
        why = await self._rate(rules.rate, subject)
        return why if why is not None or rules.gate is None else await self._gate(rules.gate)

    async def _gate(self, name: str) -> Why | None:
        subject = Subject(Kind.GATE, name)
        rules = self._book.gate(name)
        if not has_room(await self._connection.fetchval(self._sql.at_gate, name), rules.limit):
            return Why("gate", str(subject), self._book.ends(subject), self._ahead)
        return await self._rate(rules.rate, subject)

    async def _rate(self, rate: Rate | None, subject: Subject) -> Why | None:
        if rate is None:
            return None
        kept = await self._connection.fetchrow(self._sql.pace, subject.kind.value, subject.name)
        return self._wait(rate, kept, (subject,))

    def _wait(self, rate: Rate, kept: Any, layers: tuple[Subject, ...]) -> Why | None:
        """Wait until the rate allows a start, or until an override ends and another rate may be in force."""
        arrival, pace = kept or (0, "")
        free_at: Instant = rate.free_at(rate.carried(pace, arrival))
        if free_at <= self._book.now:
            return None
        ends = self._book.ends(*layers)
        return Why("rate", str(layers[0]), free_at if ends is None else min(free_at, ends), self._ahead)
