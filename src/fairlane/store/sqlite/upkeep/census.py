"""The store's own counters and marks: the census, the gates, and what the file is dedicated to."""

from __future__ import annotations

from fairlane.model.lifecycle.states import Home
from fairlane.store.contract.request import CounterPosition, from_cursor, to_cursor
from fairlane.store.contract.upkeep import (
    Census,
    CensusRequest,
    GateCounter,
    TenantCounters,
    not_dedicated,
)
from fairlane.store.sqlite.query import all_rows, one_value
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("upkeep")


def census(tx: Transaction, request: CensusRequest) -> Census:
    """Return a page of counters by tenant; the first page also counts homes, gates and keys."""
    first = CounterPosition("", "")
    start = first if request.cursor is None else from_cursor(request.cursor, CounterPosition)
    tenant = request.scope.tenant
    rows = all_rows(tx.db, _SQL.books, (tenant, start.queue, start.tenant, request.limit + 1))
    books = tuple(TenantCounters(*row) for row in rows[: request.limit])
    cursor = to_cursor(CounterPosition(books[-1].queue, books[-1].tenant)) if rows[request.limit :] else None
    if request.cursor is not None:
        return Census(homes={}, tenants=books, gates=(), idempotency_keys=0, dedup_keys=0, cursor=cursor)
    return Census(
        homes={Home(name): n for name, n in tx.db.execute(_SQL.homes, (tenant,)) if n},
        tenants=books,
        gates=gates(tx) if tenant is None else (),
        idempotency_keys=one_value(tx.db, _SQL.key_count, (tenant,)),
        dedup_keys=one_value(tx.db, _SQL.dedup_count, (tenant,)),
        cursor=cursor,
    )


def gates(tx: Transaction) -> tuple[GateCounter, ...]:
    """Return the used slots of all gates in use."""
    return tuple(GateCounter(*row) for row in tx.db.execute(_SQL.gates))


def purpose(tx: Transaction) -> str | None:
    """Return what the file is dedicated to, or None."""
    found: str | None = one_value(tx.db, _SQL.purpose)
    return found


def dedicate(tx: Transaction, wanted: str) -> None:
    """Dedicate an empty file to a purpose, once."""
    before = purpose(tx)
    if before == wanted:
        return
    if before is not None or one_value(tx.db, _SQL.has_jobs):
        raise ValueError(not_dedicated(before))
    tx.write(_SQL.insert_purpose, wanted)
