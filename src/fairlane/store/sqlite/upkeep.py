"""The upkeep facet: the schema, what is kept and for how long, the store's own books."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Final
from uuid import UUID

import msgspec

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import Because, Home, State, because, is_finished
from fairlane.model.moves import erased, stopped
from fairlane.store.contract.inspection import Inspection, InspectRequest
from fairlane.store.contract.request import (
    READ_MOST,
    BookPlace,
    Place,
    Request,
    check_page,
    from_cursor,
    to_cursor,
)
from fairlane.store.contract.upkeep import (
    Census,
    CensusRequest,
    DedicateRequest,
    ForgetReply,
    ForgetRequest,
    GateBook,
    MigrateReply,
    PruneReply,
    PruneRequest,
    PurgeReply,
    PurgeRequest,
    StrandBook,
    not_dedicated,
)
from fairlane.store.sqlite.asking import all_rows, one_value
from fairlane.store.sqlite.homes import (
    drop,
    find_live,
    move,
    read_live,
    read_page,
    rewrite_body,
    rewrite_finished,
)
from fairlane.store.sqlite.inspection import inspect
from fairlane.store.sqlite.jobs import ask_to_stop
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tx import Tx
from fairlane.store.sqlite.writer import Reader, Writer

_SQL = load("upkeep")

_LAST: Final = (2**63 - 1, b"\xff" * 17)

SHRINK_MOST: Final = 1_000
"""How many pages one pass gives back: 4 MB, some 20 ms."""


class _Seq(msgspec.Struct, frozen=True, array_like=True):
    """Where a purge stopped: bodies are numbered as they come in."""

    seq: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class SqliteUpkeep:
    """The store itself."""

    def __init__(
        self,
        writer: Writer,
        reader: Reader,
        migrate: Callable[[], Awaitable[MigrateReply]],
        plan: Callable[[], Awaitable[MigrateReply]],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader
        self._migrate = migrate
        self._plan = plan
        self._close = close

    async def migrate(self) -> MigrateReply:
        """See the contract."""
        return await self._migrate()

    async def plan(self) -> MigrateReply:
        """See the contract."""
        return await self._plan()

    async def prune(self, request: PruneRequest) -> PruneReply:
        """See the contract."""
        return await self._writer.run(lambda tx: _prune(tx, request))

    async def forget(self, request: ForgetRequest) -> ForgetReply:
        """See the contract."""
        tenant = request.scope.tenant
        if tenant is None:
            message = "forget needs the scope of one tenant"
            raise ValueError(message)
        start = (0, b"")
        if request.cursor is not None:
            place = from_cursor(request.cursor)
            start = (place.enqueued_at, place.id.bytes)
        return await self._writer.run(lambda tx: _forget(tx, request, tenant, start))

    async def purge(self, request: PurgeRequest) -> PurgeReply:
        """See the contract."""
        seq = 0 if request.cursor is None else from_cursor(request.cursor, _Seq).seq
        return await self._writer.run(lambda tx: _purge(tx, request, seq))

    async def census(self, request: CensusRequest) -> Census:
        """See the contract."""
        check_page(request.limit)
        start = BookPlace("", "") if request.cursor is None else from_cursor(request.cursor, BookPlace)
        return await self._reader.run(lambda tx: _census(tx, request, start))

    async def gates(self, request: Request) -> tuple[GateBook, ...]:
        """See the contract."""
        if request.scope.tenant is not None:
            return ()
        rows = await self._reader.run(lambda tx: all_rows(tx.db, _SQL.gates))
        return tuple(GateBook(*row) for row in rows)

    async def inspect(self, request: InspectRequest) -> Inspection:
        """See the contract."""
        return await self._reader.run(lambda tx: inspect(tx, request))

    async def dedicate(self, request: DedicateRequest) -> None:
        """See the contract."""
        await self._writer.run(lambda tx: _dedicate(tx, request.purpose))

    async def purpose(self, request: Request) -> str | None:  # noqa: ARG002 (everybody may know)
        """See the contract."""
        return await self._reader.run(_purpose)

    async def aclose(self) -> None:
        """See the contract."""
        await self._close()


def _prune(tx: Tx, request: PruneRequest) -> PruneReply:
    keep = request.retention
    by_state = (keep.succeeded, keep.cancelled, keep.dead, keep.results)
    by_name = (msgspec.json.encode(keep.queues).decode(), msgspec.json.encode(keep.tenants).decode())
    shortest = min(*by_state, *keep.queues.values(), *keep.tenants.values())
    values = (tx.now, request.scope.tenant, request.most + 1, *by_state, *by_name, tx.now - shortest)
    over = read_page(tx, _SQL.finished, values)
    jobs = results = 0
    for seq, job in over[: request.most]:
        if tx.now - (job.settled_at or tx.now) >= keep.keep(job.state, job.queue, job.tenant):
            drop(tx, seq, job)
            jobs += 1
        else:
            tx.write(_SQL.result_out, seq)
            results += 1
    if len(over) > request.most:
        return PruneReply(jobs, results, 0, is_partial=True)
    tx.flush()
    keys = all_rows(tx.db, _SQL.keys_out, (tx.now - keep.keys, request.scope.tenant))
    _shrink(tx)
    return PruneReply(jobs, results, len(keys))


def _shrink(tx: Tx) -> None:
    """Give free pages back to the disk, a part at a time; a quarter of the file stays for the next jobs."""
    free, pages = one_value(tx.db, "PRAGMA freelist_count"), one_value(tx.db, "PRAGMA page_count")
    surplus = min(free - pages // 4, SHRINK_MOST)
    if surplus > 0:
        all_rows(tx.db, f"PRAGMA incremental_vacuum({surplus})")


def _forget(tx: Tx, request: ForgetRequest, tenant: str, start: tuple[int, bytes]) -> ForgetReply:
    for row in all_rows(tx.db, _SQL.running_of, (tenant,)):
        ask_to_stop(tx, read_live(row), because(Because.ASKED, request.reason))
    tx.flush()
    running = one_value(tx.db, _SQL.running_count, (tenant,))
    edge = all_rows(tx.db, _SQL.edge_of_bodies, (tenant, *start, READ_MOST - 1))
    end = edge[0] if len(edge) > 1 else _LAST
    left = read_page(tx, _SQL.contents_of, (tenant, *start, *end, request.most + 1))
    page, rest = left[: request.most], left[request.most :]
    for seq, job in page:
        _erase(tx, seq, job, because(Because.PURGED, request.reason))
    if rest:
        last = page[-1][1]
        return ForgetReply(len(page), running, to_cursor(Place(last.enqueued_at, last.id)))
    if end is not _LAST:
        return ForgetReply(len(page), running, to_cursor(Place(end[0], UUID(bytes=end[1]))))
    tx.flush()
    tx.db.execute(_SQL.keys_of, (tenant,))
    return ForgetReply(len(page), running)


def _erase(tx: Tx, seq: int, job: JobRecord, word: str) -> None:
    if not is_finished(job.state):
        held = find_live(tx, job.id)
        if held is not None:
            job = move(tx, held, stopped(job, State.CANCELLED, word, tx.now))
        tx.flush()
    empty = erased(job)
    rewrite_body(tx, seq, empty)
    rewrite_finished(tx, seq, empty)


def _purge(tx: Tx, request: PurgeRequest, start: int) -> PurgeReply:
    edge = all_rows(tx.db, _SQL.edge_of_live, (start, READ_MOST - 1))
    end = edge[0][0] if len(edge) > 1 else None
    values = (request.scope.tenant, request.queue, request.task, request.most + 1, start, end)
    rows = all_rows(tx.db, _SQL.waiting, values)
    page, rest = rows[: request.most], rows[request.most :]
    word = because(Because.PURGED, request.reason)
    for row in page:
        held = read_live(row)
        move(tx, held, stopped(held.job, State.CANCELLED, word, tx.now))
    last = page[-1][0] if rest else end
    return PurgeReply(len(page), None if last is None else to_cursor(_Seq(last)))


def _census(tx: Tx, request: CensusRequest, start: BookPlace) -> Census:
    tenant = request.scope.tenant
    rows = all_rows(tx.db, _SQL.books, (tenant, start.queue, start.tenant, request.limit + 1))
    books = tuple(StrandBook(*row) for row in rows[: request.limit])
    cursor = to_cursor(BookPlace(books[-1].queue, books[-1].tenant)) if rows[request.limit :] else None
    if request.cursor is not None:
        return Census(homes={}, tenants=books, gates=(), idempotency_keys=0, dedup_keys=0, cursor=cursor)
    gates = all_rows(tx.db, _SQL.gates) if tenant is None else []
    return Census(
        homes={Home(name): n for name, n in tx.db.execute(_SQL.homes, (tenant,)) if n},
        tenants=books,
        gates=tuple(GateBook(*row) for row in gates),
        idempotency_keys=one_value(tx.db, _SQL.key_count, (tenant,)),
        dedup_keys=one_value(tx.db, _SQL.dedup_count, (tenant,)),
        cursor=cursor,
    )


def _purpose(tx: Tx) -> str | None:
    found: str | None = one_value(tx.db, _SQL.purpose)
    return found


def _dedicate(tx: Tx, purpose: str) -> None:
    before = _purpose(tx)
    if before == purpose:
        return
    if before is not None or one_value(tx.db, _SQL.has_jobs):
        raise ValueError(not_dedicated(before))
    tx.write(_SQL.purpose_set, purpose)
