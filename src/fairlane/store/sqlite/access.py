"""The access facet: users, tokens, sessions, sign-in links, attempts to sign in (S79-S81)."""

from __future__ import annotations

from typing import Any

from fairlane.model.access_records import (
    AccessKey,
    AccessRow,
    Attempts,
    attempts_now,
    is_seen_again,
    live,
    longest_wait,
)
from fairlane.model.instants import Micros
from fairlane.store.access_rows import changed_records, changed_row, is_as_expected, pack_access, read_access
from fairlane.store.audit_entries import access_entries
from fairlane.store.contract.access import (
    AccessFindRequest,
    AccessListRequest,
    AccessReply,
    AccessWriteRequest,
    AttemptRequest,
    ForgiveRequest,
    SeenRequest,
)
from fairlane.store.contract.request import Request, check_page, check_serves_all
from fairlane.store.sqlite.query import all_rows, one_row
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.threads import ReaderThread, WriterThread
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("access")


class SqliteAccess:
    """Records in one table, attempts in another."""

    def __init__(self, writer: WriterThread, reader: ReaderThread) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader

    async def write(self, request: AccessWriteRequest) -> bool:
        check_serves_all(request)
        return await self._writer.run(lambda tx: _write(tx, request))

    async def find(self, request: AccessFindRequest) -> AccessReply:
        check_serves_all(request)

        def read(tx: Transaction) -> AccessReply:
            found = (live(_read(tx, key), tx.now) for key in request.keys)
            return AccessReply(tuple(row for row in found if row is not None), tx.now)

        return await self._reader.run(read)

    async def list(self, request: AccessListRequest) -> AccessReply:
        check_serves_all(request)
        check_page(request.limit)

        def read(tx: Transaction) -> AccessReply:
            values = (request.kind, request.after, request.limit, tx.now)
            return AccessReply(tuple(map(_row, all_rows(tx.db, _SQL.page, values))), tx.now)

        return await self._reader.run(read)

    async def note_seen(self, request: SeenRequest) -> None:
        check_serves_all(request)

        def note(tx: Transaction) -> None:
            for key in request.keys:
                row = live(_read(tx, key), tx.now)
                if row is not None and is_seen_again(row, tx.now):
                    tx.db.execute(_SQL.seen, (key.kind, key.name, tx.now))

        await self._writer.run(note)

    async def attempt(self, request: AttemptRequest) -> Micros:
        check_serves_all(request)
        return await self._writer.run(lambda tx: _attempt(tx, request))

    async def forgive(self, request: ForgiveRequest) -> None:
        check_serves_all(request)

        def give_back(tx: Transaction) -> None:
            for label in request.labels:
                tx.db.execute(_SQL.forgive, (label,))

        await self._writer.run(give_back)

    async def clean(self, request: Request) -> int:
        check_serves_all(request)

        def remove(tx: Transaction) -> int:
            tx.db.execute(_SQL.clean_attempts, (tx.now,))
            return len(all_rows(tx.db, _SQL.clean, (tx.now,)))

        return await self._writer.run(remove)


def _write(tx: Transaction, request: AccessWriteRequest) -> bool:
    found = {one.key: _read(tx, one.key) for one in request.changes}
    rows = {key: row for key, row in found.items() if row is not None}
    if not all(is_as_expected(one, rows.get(one.key), tx.now) for one in request.changes):
        return False
    tx.append("audit", access_entries(request.operation, changed_records(request, rows, tx.now)))
    for one in request.changes:
        row = changed_row(one, rows.get(one.key), tx.now)
        if row is None:
            tx.db.execute(_SQL.remove, (one.key.kind, one.key.name))
        else:
            values = (pack_access(row.record), row.revision, row.created_at, row.seen_at, row.expires_at)
            tx.db.execute(_SQL.write, (one.key.kind, one.key.name, *values))
    return True


def _attempt(tx: Transaction, request: AttemptRequest) -> Micros:
    counts: dict[str, Attempts] = {}
    for label in request.most:
        row = one_row(tx.db, _SQL.attempts, (label,))
        counts[label] = attempts_now(None if row is None else Attempts(*row), tx.now, request.within)
    wait = longest_wait(counts, request.most, tx.now)
    if not wait:
        for label, one in counts.items():
            tx.db.execute(_SQL.count, (label, one.count + 1, one.until))
    return wait


def _read(tx: Transaction, key: AccessKey) -> AccessRow | None:
    row = one_row(tx.db, _SQL.read, (key.kind, key.name))
    return None if row is None else _row(row)


def _row(columns: tuple[Any, ...]) -> AccessRow:
    record, *rest = columns
    return AccessRow(read_access(record), *rest)
