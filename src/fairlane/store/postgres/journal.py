"""The journal facet: what operators did and what happened (S60, S76). Other verbs use `append_entries`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from fairlane.model.instants import Instant
from fairlane.model.journal.entries import Entry, JournalName, NewEntry, PendingEntry
from fairlane.store.contract.journal import (
    AppendRequest,
    EntriesRequest,
    EntryPage,
    JournalEnd,
    NumberRequest,
    PendingReply,
    PendingRequest,
    TrimRequest,
    check_append,
    check_numbers,
    check_trim,
)
from fairlane.store.contract.request import MAX_ROWS_READ, check_page, check_serves_all
from fairlane.store.postgres.claims.budget_reports import count_reports
from fairlane.store.postgres.connection import Connection, Server, StatementRunner
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.statements import load

_AFTER_ALL: Final = 2**63 - 1


async def append_entries(
    runner: StatementRunner,
    schema: str,
    at: Instant | None,
    journal: JournalName,
    entries: Sequence[NewEntry],
) -> None:
    """Append entries in the transaction of the runner; no statement if there are none."""
    if entries:
        await runner.fetch(load("journal", schema).append, at, journal, *_columns(entries))


class PostgresJournal:
    """Two journals, in the same tables."""

    def __init__(self, server: Server) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._sql = load("journal", server.schema)

    async def append(self, request: AppendRequest) -> None:
        check_append(request)
        now = self._server.now()
        await append_entries(self._server, self._server.schema, now, request.journal, request.entries)

    async def pending(self, request: PendingRequest) -> PendingReply:
        if request.journal == "events":
            await count_reports(self._server)  # a budget's share may be reached, and nobody claims
        check_page(request.limit)
        journal, tenant = request.journal, request.scope.tenant
        async with self._reading() as connection:
            row = await connection.fetchrow(self._sql.end, journal, self._server.now())
            rows = await connection.fetch(self._sql.pending, journal, tenant, request.limit)
        entries = tuple(PendingEntry(place, at, _entry(*row)) for place, at, *row in rows)
        revision, first, last, memory, now = row
        end = JournalEnd(revision, first, last, b"" if tenant is not None else memory)
        return PendingReply(entries, end, now)

    async def number(self, request: NumberRequest) -> bool:
        check_serves_all(request)
        async with self._server.transaction() as connection:
            end = await self._locked_end(connection, request.journal)
            if end.revision != request.revision:
                return False
            check_numbers(request, end.last)
            numbers = ([one.number for one in request.entries], [one.at for one in request.entries])
            values = (*numbers, *_columns([one.entry for one in request.entries]))
            seals = [one.seal for one in request.entries]
            taken = (list(request.taken), request.memory)
            is_done = await connection.fetchval(self._sql.number, request.journal, *taken, *values, seals)
            return bool(is_done)

    async def entries(self, request: EntriesRequest) -> EntryPage:
        check_page(request.limit)
        async with self._reading() as connection:
            _, first, last, *_ = await connection.fetchrow(self._sql.end, request.journal, None)
            scan = _scan(request, first)
            rows = await connection.fetch(
                _filled(self._sql.page, self._sql, request), *scan, *_filters(request), request.limit + 1
            )
            edge = None
            if len(rows) <= request.limit:
                edge = await connection.fetchval(_filled(self._sql.edge, self._sql, request), *scan)
        entries = tuple(
            Entry(number, at, _entry(*row), bytes(seal)) for number, at, *row, seal in rows[: request.limit]
        )
        if len(rows) > request.limit:
            return EntryPage(entries, entries[-1].number)
        if request.backwards or edge is not None or not last:
            return EntryPage(entries, edge)
        return EntryPage(entries, max(request.after, last))

    async def trim(self, request: TrimRequest) -> bool:
        check_serves_all(request)
        async with self._server.transaction() as connection:
            end = await self._locked_end(connection, request.journal)
            if end.revision != request.revision:
                return False
            check_trim(request, end.last)
            values = (request.journal, request.up_to, request.limit, request.memory)
            await connection.fetch(self._sql.trim, *values)
            return True

    def _reading(self) -> AbstractAsyncContextManager[Connection]:
        return read_transaction(self._server, in_order=True, at_one_instant=True)

    async def _locked_end(self, connection: Connection, journal: JournalName) -> JournalEnd:
        return JournalEnd(*await connection.fetchrow(self._sql.lock, journal))


def _columns(entries: Iterable[NewEntry]) -> tuple[list[Any], ...]:
    return (
        [one.kind for one in entries],
        [one.tenant for one in entries],
        [one.subject for one in entries],
        [one.count for one in entries],
        [one.body for one in entries],
    )


def _entry(kind: str, tenant: str | None, subject: str, count: int, body: bytes) -> NewEntry:
    return NewEntry(kind=kind, tenant=tenant, subject=subject, count=count, body=bytes(body))


def _scan(request: EntriesRequest, first: int) -> tuple[Any, ...]:
    """Return journal, the numbers between which to read, tenant, and how many rows are read.

    Before the oldest entry there may be very many that were deleted: the scan starts there.
    """
    after = max(first - 1, 0 if request.backwards else request.after)
    before = request.after if request.backwards and request.after else _AFTER_ALL
    return request.journal, after, before, request.scope.tenant, MAX_ROWS_READ


def _filters(request: EntriesRequest) -> tuple[Any, ...]:
    return sorted(request.kinds) or None, request.subject, request.since, request.until


def _filled(text: str, sql: Any, request: EntriesRequest) -> str:
    chunk = sql.chunk if request.scope.tenant is None else sql.chunk_of_tenant
    return text.replace("{chunk}", chunk).replace("{direction}", "DESC" if request.backwards else "ASC")
