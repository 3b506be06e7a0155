"""The access facet: users, tokens, sessions, sign-in links, attempts to sign in (S79-S81)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fairlane.model.access_records import (
    SEEN_EVERY,
    AccessKey,
    AccessRow,
    Attempts,
    attempts_now,
    live,
    longest_wait,
)
from fairlane.model.instants import Instant, Micros
from fairlane.store.access_rows import changed_records, changed_row, is_as_expected, pack_access, read_access
from fairlane.store.audit_entries import access_entries
from fairlane.store.contract.access import (
    AccessChange,
    AccessFindRequest,
    AccessListRequest,
    AccessReply,
    AccessWriteRequest,
    AttemptRequest,
    ForgiveRequest,
    SeenRequest,
)
from fairlane.store.contract.request import Request, check_page, check_serves_all
from fairlane.store.postgres.connection import Connection, Server
from fairlane.store.postgres.journal import append_entries
from fairlane.store.postgres.statements import load


class _Overtaken(Exception):  # noqa: N818 (no error: it rolls back, and is an answer)
    """Somebody else has made a record first."""


class PostgresAccess:
    """Records in one table, attempts in another."""

    def __init__(self, server: Server) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._sql = load("access", server.schema)

    async def write(self, request: AccessWriteRequest) -> bool:
        check_serves_all(request)
        try:
            async with self._server.transaction() as connection:
                return await self._write(connection, request)
        except _Overtaken:
            return False

    async def find(self, request: AccessFindRequest) -> AccessReply:
        check_serves_all(request)
        now = await self._now(self._server)
        rows = _rows(await self._server.fetch(self._sql.read, *_columns(request.keys)))
        found = (live(rows.get(key), now) for key in request.keys)
        return AccessReply(tuple(row for row in found if row is not None), now)

    async def list(self, request: AccessListRequest) -> AccessReply:
        check_serves_all(request)
        check_page(request.limit)
        now = await self._now(self._server)
        values = (request.kind, request.after, request.limit, now)
        return AccessReply(tuple(_rows(await self._server.fetch(self._sql.page, *values)).values()), now)

    async def note_seen(self, request: SeenRequest) -> None:
        check_serves_all(request)
        await self._server.fetch(self._sql.seen, self._server.now(), *_columns(request.keys), SEEN_EVERY)

    async def attempt(self, request: AttemptRequest) -> Micros:
        check_serves_all(request)
        labels = sorted(request.most)
        async with self._server.transaction() as connection:
            begun_at = await self._now(connection)
            rows = await connection.fetch(self._sql.lock_attempts, labels, begun_at + request.within)
            now = await self._now(connection)  # others may have held the locks for a while
            kept = {label: Attempts(count, until) for label, count, until in rows}
            counts = {label: attempts_now(kept[label], now, request.within) for label in labels}
            wait = longest_wait(counts, request.most, now)
            if not wait:
                ends = [counts[label].until for label in labels]
                await connection.fetch(
                    self._sql.count, labels, [counts[one].count + 1 for one in labels], ends
                )
        return wait

    async def forgive(self, request: ForgiveRequest) -> None:
        check_serves_all(request)
        for label in request.labels:
            await self._server.fetch(self._sql.forgive, label)

    async def clean(self, request: Request) -> int:
        check_serves_all(request)
        await self._server.fetch(self._sql.clean_attempts, self._server.now())
        return len(await self._server.fetch(self._sql.clean, self._server.now()))

    async def _now(self, connection: Server | Connection) -> Instant:
        ((now,),) = await connection.fetch(self._sql.now, self._server.now())
        return int(now)

    async def _write(self, connection: Connection, request: AccessWriteRequest) -> bool:
        changes = sorted(request.changes, key=lambda one: one.key)
        rows = _rows(await connection.fetch(self._sql.lock, *_columns(one.key for one in changes)))
        now = await self._now(connection)
        if not all(is_as_expected(one, rows.get(one.key), now) for one in changes):
            return False
        for one in changes:
            await self._replace(connection, one, rows.get(one.key), now)
        entries = access_entries(request.operation, changed_records(request, rows, now))
        await append_entries(connection, self._server.schema, self._server.now(), "audit", entries)
        return True

    async def _replace(
        self, connection: Connection, change: AccessChange, before: AccessRow | None, now: Instant
    ) -> None:
        key, row = (change.key.kind, change.key.name), changed_row(change, before, now)
        if row is None:
            await connection.fetch(self._sql.remove, *key)
            return
        values = (pack_access(row.record), row.revision, row.created_at, row.seen_at, row.expires_at)
        revision = None if before is None else before.revision
        if not await connection.fetchval(self._sql.write, *key, *values, revision):
            raise _Overtaken


def _columns(keys: Iterable[AccessKey]) -> tuple[list[str], list[str]]:
    keys = tuple(keys)
    return [key.kind for key in keys], [key.name for key in keys]


def _rows(rows: Iterable[Sequence[Any]]) -> dict[AccessKey, AccessRow]:
    return {
        AccessKey(kind, name): AccessRow(read_access(record), *rest) for kind, name, record, *rest in rows
    }
