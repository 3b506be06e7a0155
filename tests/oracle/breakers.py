"""The breakers facet of the oracle, and what its claims ask about breakers."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from fairlane.model.guards.breaker import CLOSED, BreakerState, opens_at, with_permit
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.overrides import BreakerRules, Subject, SubjectKind
from fairlane.store.breaker_changes import (
    breaker_entries,
    breaker_events,
    entered,
    keys_of,
    operated,
    reported,
)
from fairlane.store.contract.breakers import (
    BreakerKey,
    BreakersReply,
    BreakersRequest,
    ChangeBreakerRequest,
    EnterReply,
    EnterRequest,
    ReportRequest,
    StoredBreaker,
    check_enter,
    check_operates,
    check_reports,
)
from fairlane.store.contract.request import check_page
from tests.oracle.books import Books, Parked, Strand
from tests.oracle.core import Core
from tests.oracle.waking import breaker_room, line_of


class OracleBreakers:
    """States in a dictionary."""

    def __init__(self, core: Core) -> None:
        """Share the state with the other facets."""
        self._core = core

    async def report(self, request: ReportRequest) -> BreakersReply:
        check_reports(request)
        books, now = self._core.books, self._core.now()
        keys = {key for one in request.reports for key in keys_of(one.name, one.outcomes.tenant)}
        states = {key: books.breakers.get(key, CLOSED) for key in keys}
        after = reported(request.reports, lambda name: _rules(books, name, now), states, now)
        for key, state in after.items():
            self._change(key, state)
        return BreakersReply(now, tuple(StoredBreaker(key, after[key]) for key in sorted(after)))

    async def enter(self, request: EnterRequest) -> EnterReply:
        check_enter(request)
        books = self._core.books
        job = request.job if request.job in _running(books, {request.job}) else None
        states = {key: books.breakers.get(key, CLOSED) for key in keys_of(request.name, request.tenant)}
        asked = {job for state in states.values() for job in state.permits}
        reply, after = entered(states, self._core.now(), job, _running(books, asked))
        books.breakers.update(after)
        return reply

    async def change(self, request: ChangeBreakerRequest) -> StoredBreaker:
        check_operates(request)
        now, before = self._core.now(), self._core.books.breakers.get(request.key, CLOSED)
        after = operated(request, before, now)
        self._core.append("audit", *breaker_entries(request.operation, request.key, before, after, now))
        self._change(request.key, after)
        return self._stored(request.key)

    async def list(self, request: BreakersRequest) -> BreakersReply:
        check_operates(request)
        check_page(request.limit)
        after = request.after or BreakerKey("")
        keys = sorted(
            key for key in self._core.books.breakers if key > after and request.name in {None, key.name}
        )
        return BreakersReply(self._core.now(), tuple(map(self._stored, keys[: request.limit])))

    def _change(self, key: BreakerKey, after: BreakerState) -> None:
        books = self._core.books
        before = books.breakers.get(key, CLOSED)
        if before == after:
            return
        books.breakers[key] = after
        self._core.append("events", *breaker_events(key, before, after))
        if before.slots is not None:
            self._core.hint({strand[0] for strand in _in_line(books, key)})

    def _stored(self, key: BreakerKey) -> StoredBreaker:
        books = self._core.books
        return StoredBreaker(key, books.breakers[key], len(_in_line(books, key)))


def breaker_block(books: Books, strand: Strand, now: Instant) -> Parked | None:
    """Return what blocks a strand whose breaker is not closed."""
    name = books.task_rules(strand[2], now).breaker
    for key in () if name is None else keys_of(name, strand[1]):
        if breaker_room(books, key, now) <= 0:
            subject = Subject(SubjectKind.BREAKER, str(key).removeprefix("breaker "))
            return Parked("breaker", subject, opens_at(books.breakers[key], now))
    return None


def take_permits(books: Books, job: JobRecord, now: Instant) -> bool:
    """Note a claimed job at the breakers that it passes; return whether one is not closed."""
    has_permit = False
    for key in not_closed(books, job.task, job.tenant, now):
        state = books.breakers[key]
        running = _running(books, set(state.permits))
        books.breakers[key] = with_permit(state, now, job.id, running)
        has_permit = True
    return has_permit


def not_closed(books: Books, task: str, tenant: str, now: Instant) -> list[BreakerKey]:
    """Return the breakers before a task that are not closed."""
    name = books.task_rules(task, now).breaker
    keys = () if name is None else keys_of(name, tenant)
    return [key for key in keys if books.breakers.get(key, CLOSED).slots is not None]


def _rules(books: Books, name: str, now: Instant) -> BreakerRules:
    rules = books.rules(Subject(SubjectKind.BREAKER, name), now)
    assert isinstance(rules, BreakerRules)
    return rules


def _running(books: Books, jobs: Iterable[UUID | None]) -> set[UUID]:
    found = (books.jobs.get(job) for job in jobs if job is not None)
    return {job.id for job in found if job is not None and job.state is State.RUNNING}


def _in_line(books: Books, key: BreakerKey) -> list[Strand]:
    return [what for what, one in books.all_parked() if line_of(one) == str(key) and len(what) == 3]
