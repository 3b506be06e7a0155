"""The journal facet: append to the audit and the events, number what was appended, read and trim it.

Places are in the order of commits, because one transaction writes at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

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
from fairlane.store.sqlite.query import all_rows, json_array, one_value
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.threads import ReaderThread, WriterThread
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("journal")

_HIGHEST: Final = 2**63 - 1


class SqliteJournal:
    """What operators did, and what happened."""

    def __init__(self, writer: WriterThread, reader: ReaderThread) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader

    async def append(self, request: AppendRequest) -> None:
        check_append(request)
        await self._writer.run(lambda tx: tx.append(request.journal, request.entries))

    async def pending(self, request: PendingRequest) -> PendingReply:
        check_page(request.limit)
        return await self._reader.run(lambda tx: _pending(tx, request))

    async def number(self, request: NumberRequest) -> bool:
        check_serves_all(request)
        return await self._writer.run(lambda tx: _number(tx, request))

    async def entries(self, request: EntriesRequest) -> EntryPage:
        check_page(request.limit)
        return await self._reader.run(lambda tx: _entries(tx, request))

    async def trim(self, request: TrimRequest) -> bool:
        check_serves_all(request)
        return await self._writer.run(lambda tx: _trim(tx, request))


def _end(tx: Transaction, journal: JournalName) -> JournalEnd:
    (row,) = all_rows(tx.db, _SQL.end, (journal,))
    return JournalEnd(*row)


def _pending(tx: Transaction, request: PendingRequest) -> PendingReply:
    tenant = request.scope.tenant
    rows = all_rows(tx.db, _SQL.pending, (request.journal, tenant, request.limit))
    entries = tuple(PendingEntry(place, at, _entry(row)) for place, at, *row in rows)
    end = _end(tx, request.journal)
    if tenant is not None:
        end = JournalEnd(end.revision, end.first, end.last)
    return PendingReply(entries, end, tx.now)


def _number(tx: Transaction, request: NumberRequest) -> bool:
    end = _end(tx, request.journal)
    if request.revision != end.revision:
        return False
    check_numbers(request, end.last)
    taken = (request.journal, json_array(request.taken))
    if one_value(tx.db, _SQL.count_pending, taken) != len(request.taken):
        return False
    tx.db.execute(_SQL.take, taken)
    tx.write_all(_SQL.insert, [_row(request.journal, one) for one in request.entries])
    last = end.last + len(request.entries)
    tx.db.execute(_SQL.write_end, (request.journal, last, request.memory))
    return True


def _trim(tx: Transaction, request: TrimRequest) -> bool:
    end = _end(tx, request.journal)
    if request.revision != end.revision:
        return False
    check_trim(request, end.last)
    tx.db.execute(_SQL.trim, (request.journal, request.up_to, request.limit))
    tx.db.execute(_SQL.write_end, (request.journal, end.last, request.memory))
    return True


def _entries(tx: Transaction, request: EntriesRequest) -> EntryPage:
    """Return a page of entries in one direction, and where to continue."""
    edge = read_entries(tx, _SQL.edge, request, limit=MAX_ROWS_READ - 1)
    last_read = edge[0][0] if len(edge) > 1 else None
    rows = read_entries(tx, _SQL.entries, request, limit=request.limit + 1, last=last_read)
    found = tuple(Entry(number, at, _entry(row), row[-1]) for number, at, *row in rows[: request.limit])
    if len(rows) > request.limit:
        return EntryPage(found, found[-1].number)
    if last_read is not None:
        return EntryPage(found, last_read)
    last = _end(tx, request.journal).last
    is_over = request.backwards or not last
    return EntryPage(found, None if is_over else max(request.after, last))


def read_entries(
    tx: Transaction, statement: str, request: EntriesRequest, *, limit: int, last: int | None = None
) -> list[tuple[Any, ...]]:
    """Return the rows of a statement about numbered entries, up to the number `last` in the direction asked.

    A tenant's entries come from its own index: how far a call gets says nothing about other tenants.
    """
    index, walk = "NOT INDEXED", "true"  # the primary key
    if request.scope.tenant is not None:
        index, walk = "INDEXED BY entry_tenant", "tenant = :tenant"
    elif request.subject is not None:
        index, walk = "INDEXED BY entry_subject", "subject = :subject"
    statement = statement.replace("{index}", index).replace("{walk}", walk)
    statement = statement.replace("{order}", "DESC" if request.backwards else "ASC")
    low, high = request.after + 1, _HIGHEST if last is None else last
    if request.backwards:
        low, high = last or 1, (request.after or _HIGHEST) - 1
    values = {
        "journal": request.journal,
        "low": low,
        "high": high,
        "tenant": request.scope.tenant,
        "subject": request.subject,
        "kinds": json_array(request.kinds) if request.kinds else None,
        "since": request.since,
        "until": request.until,
        "limit": limit,
    }
    return all_rows(tx.db, statement, values)


def _entry(row: Sequence[Any]) -> NewEntry:
    kind, tenant, subject, count, body, *_ = row
    return NewEntry(kind=kind, tenant=tenant, subject=subject, count=count, body=body)


def _row(journal: JournalName, one: Entry) -> tuple[Any, ...]:
    entry = one.entry
    return (
        *(journal, one.number, one.at),
        *(entry.kind, entry.tenant, entry.subject, entry.count, entry.body, one.seal),
    )
