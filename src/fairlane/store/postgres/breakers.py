"""The breakers facet: outcomes, permits, what operators set (S58). Claims read the same rows in SQL.

A change is computed here and written if what was read is still stored; else it is read and computed again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from fairlane.model.guards.breaker import CLOSED, BreakerState
from fairlane.model.instants import Instant
from fairlane.model.journal.entries import NewEntry
from fairlane.model.policy.overrides import BreakerRules, Subject, SubjectKind
from fairlane.store.breaker_changes import (
    breaker_entries,
    breaker_events,
    entered,
    keys_of,
    operated,
    pack_state,
    reported,
    unpack_state,
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
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.policies.policy_snapshot import PolicySnapshot, read_policy_snapshot
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.rows import plain_uuid
from fairlane.store.postgres.statements import load


class _Stored(NamedTuple):
    """A state and the revision under which it was read; 0: there was none."""

    state: BreakerState = CLOSED
    revision: int = 0


class PostgresBreakers:
    """One row for each breaker, or for each tenant of one."""

    def __init__(self, server: Server) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._sql = load("breakers", server.schema)

    async def report(self, request: ReportRequest) -> BreakersReply:
        check_reports(request)
        names = {one.name for one in request.reports}
        keys = {key for one in request.reports for key in keys_of(one.name, one.outcomes.tenant)}
        async with self._server.transaction() as connection:
            subjects = [Subject(SubjectKind.BREAKER, name) for name in names]
            snapshot = await read_policy_snapshot(self._server, connection, subjects)
        while True:
            stored = await self._read(keys)
            before = {key: one.state for key, one in stored.items()}
            after = reported(request.reports, lambda name: _rules(snapshot, name), before, snapshot.now)
            if await self._write(stored, after):
                found = tuple(StoredBreaker(key, after[key]) for key in sorted(after))
                return BreakersReply(snapshot.now, found)

    async def enter(self, request: EnterRequest) -> EnterReply:
        check_enter(request)
        while True:
            now = await self._now()
            stored = await self._read(keys_of(request.name, request.tenant))
            states = {key: one.state for key, one in stored.items()}
            asked = {job for state in states.values() for job in state.permits}
            running = await self._running(asked if request.job is None else {*asked, request.job})
            job = request.job if request.job in running else None
            reply, after = entered(states, now, job, running)
            if await self._write(stored, after):
                return reply

    async def change(self, request: ChangeBreakerRequest) -> StoredBreaker:
        check_operates(request)
        key = request.key
        while True:
            now = await self._now()
            stored = await self._read((key,))
            before = stored[key].state
            after = operated(request, before, now)
            audit = breaker_entries(request.operation, key, before, after, now)
            if await self._write(stored, {key: after}, audit):
                break
        page = BreakersRequest(scope=request.scope, name=key.name)
        return next(one for one in (await self.list(page)).breakers if one.key == key)

    async def list(self, request: BreakersRequest) -> BreakersReply:
        check_operates(request)
        check_page(request.limit)
        after = request.after or BreakerKey("")
        values = (request.name, after.name, after.tenant, request.limit, MAX_PAGE_SIZE)
        now = await self._now()
        async with read_transaction(self._server) as connection:
            rows = await connection.fetch(self._sql.page, *values)
        found = (StoredBreaker(key, one.state, row[-1]) for row in rows for key, one in [_row(row)])
        return BreakersReply(now, tuple(found))

    async def _now(self) -> Instant:
        sql = load("policies", self._server.schema)
        ((now,),) = await self._server.fetch(sql.now, self._server.now())
        return int(now)

    async def _read(self, keys: Collection[BreakerKey]) -> dict[BreakerKey, _Stored]:
        names = [key.name for key in keys], [key.tenant for key in keys]
        rows = await self._server.fetch(self._sql.read, *names)
        return {key: _Stored() for key in keys} | dict(map(_row, rows))

    async def _running(self, jobs: Collection[UUID]) -> set[UUID]:
        if not jobs:
            return set()
        ((found,),) = await self._server.fetch(self._sql.running, list(jobs))
        return set(map(plain_uuid, found))

    async def _write(
        self,
        stored: Mapping[BreakerKey, _Stored],
        after: Mapping[BreakerKey, BreakerState],
        audit: Sequence[NewEntry] = (),
    ) -> bool:
        """Write what has changed, tell of it, and hint at the queues that it lets on; False: read again."""
        changed = {key: state for key, state in after.items() if state != stored[key].state}
        if not changed:
            return True
        events = [
            one for key, state in changed.items() for one in breaker_events(key, stored[key].state, state)
        ]
        entries = [("audit", one) for one in audit] + [("events", one) for one in events]
        columns = [(journal, one.kind, one.tenant, one.subject, one.body) for journal, one in entries]
        rows = [_columns(key, stored[key].revision, state) for key, state in changed.items()]
        ((is_written,),) = await self._server.fetch(
            self._sql.write,
            self._server.now(),
            msgspec.json.encode(rows).decode(),
            *([list(column) for column in zip(*columns, strict=True)] or [[], [], [], [], []]),
        )
        lines = [str(key) for key in changed if stored[key].state.slots is not None]
        if is_written and lines:
            ((queues,),) = await self._server.fetch(self._sql.queues, lines)
            self._server.hint(queues)
        return bool(is_written)


def _rules(snapshot: PolicySnapshot, name: str) -> BreakerRules:
    return snapshot.rules(Subject(SubjectKind.BREAKER, name))  # type: ignore[return-value]


def _row(row: Any) -> tuple[BreakerKey, _Stored]:
    name, tenant, revision, half_opened_at, permits, packed = list(row)[:6]
    state = msgspec.structs.replace(
        unpack_state(packed), half_opened_at=half_opened_at, permits=tuple(map(plain_uuid, permits))
    )
    return BreakerKey(name, tenant), _Stored(state, revision)


def _columns(key: BreakerKey, revision: int, state: BreakerState) -> dict[str, object]:
    return {
        "name": key.name,
        "tenant": key.tenant,
        "revision": revision,
        "open_until": state.open_until,
        "slots": state.slots,
        "half_opened_at": state.half_opened_at,
        "permits": state.permits,
        "state": f"\\x{pack_state(state).hex()}",
    }
