"""The breakers facet: outcomes, permits, what operators set (S58). Claims read the same rows."""

from __future__ import annotations

from fairlane.model.guards.breaker import BreakerState
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
from fairlane.store.contract.request import MAX_PAGE_SIZE, check_page
from fairlane.store.sqlite.claims.parking import hint_at_gate
from fairlane.store.sqlite.query import all_rows, one_value
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.threads import ReaderThread, WriterThread
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("breakers")


class SqliteBreakers:
    """One row for each breaker, or for each tenant of one."""

    def __init__(self, writer: WriterThread, reader: ReaderThread) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader

    async def report(self, request: ReportRequest) -> BreakersReply:
        check_reports(request)
        return await self._writer.run(lambda tx: _report(tx, request))

    async def enter(self, request: EnterRequest) -> EnterReply:
        check_enter(request)
        return await self._writer.run(lambda tx: _enter(tx, request))

    async def change(self, request: ChangeBreakerRequest) -> StoredBreaker:
        check_operates(request)
        return await self._writer.run(lambda tx: _set(tx, request))

    async def list(self, request: BreakersRequest) -> BreakersReply:
        check_operates(request)
        check_page(request.limit)
        return await self._reader.run(lambda tx: _list(tx, request))


def _report(tx: Transaction, request: ReportRequest) -> BreakersReply:
    keys = {key for one in request.reports for key in keys_of(one.name, one.outcomes.tenant)}
    after = reported(
        request.reports,
        lambda name: tx.policies.breaker(name, tx.now),
        {key: tx.breakers[key] for key in keys},
        tx.now,
    )
    for key, state in after.items():
        _change(tx, key, state)
    return BreakersReply(tx.now, tuple(StoredBreaker(key, after[key]) for key in sorted(after)))


def _enter(tx: Transaction, request: EnterRequest) -> EnterReply:
    states = {key: tx.breakers[key] for key in keys_of(request.name, request.tenant)}
    asked = {job for state in states.values() for job in state.permits}
    job = request.job if request.job is None or tx.breakers.running((request.job,)) else None
    reply, after = entered(states, tx.now, job, tx.breakers.running(asked))
    for key, state in after.items():
        tx.breakers[key] = state
    return reply


def _set(tx: Transaction, request: ChangeBreakerRequest) -> StoredBreaker:
    before = tx.breakers[request.key]
    after = operated(request, before, tx.now)
    tx.append("audit", breaker_entries(request.operation, request.key, before, after, tx.now))
    _change(tx, request.key, after)
    return _stored(tx, request.key)


def _change(tx: Transaction, key: BreakerKey, after: BreakerState) -> None:
    """Write a state, tell of it, and hint at the queues that it lets on."""
    before = tx.breakers[key]
    if before == after:
        return
    tx.breakers[key] = after
    tx.append("events", breaker_events(key, before, after))
    if before.slots is not None:
        hint_at_gate(tx, str(key))


def _list(tx: Transaction, request: BreakersRequest) -> BreakersReply:
    after = request.after or BreakerKey("")
    rows = all_rows(tx.db, _SQL.page, (request.name, after.name, after.tenant, request.limit))
    return BreakersReply(tx.now, tuple(_stored(tx, BreakerKey(name, tenant)) for name, tenant in rows))


def _stored(tx: Transaction, key: BreakerKey) -> StoredBreaker:
    waiting = one_value(tx.db, _SQL.waiting, (str(key), MAX_PAGE_SIZE))
    return StoredBreaker(key, tx.breakers[key], waiting)
