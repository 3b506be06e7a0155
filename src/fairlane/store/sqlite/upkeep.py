"""The upkeep facet: the schema, what is kept and for how long, the store's own books."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import Because, Home, State, because, is_finished
from fairlane.model.moves import erased, stopped
from fairlane.store.contract.inspection import Inspection, InspectRequest
from fairlane.store.contract.request import Request
from fairlane.store.contract.upkeep import (
    Census,
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


class SqliteUpkeep:
    """The store itself."""

    def __init__(
        self,
        writer: Writer,
        reader: Reader,
        migrate: Callable[[], Awaitable[MigrateReply]],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader
        self._migrate = migrate
        self._close = close

    async def migrate(self) -> MigrateReply:
        """See the contract."""
        return await self._migrate()

    async def prune(self, request: PruneRequest) -> PruneReply:
        """See the contract."""
        return await self._writer.run(lambda tx: _prune(tx, request))

    async def forget(self, request: ForgetRequest) -> ForgetReply:
        """See the contract."""
        tenant = request.scope.tenant
        if tenant is None:
            message = "forget needs the scope of one tenant"
            raise ValueError(message)
        return await self._writer.run(lambda tx: _forget(tx, request, tenant))

    async def purge(self, request: PurgeRequest) -> PurgeReply:
        """See the contract."""
        return await self._writer.run(lambda tx: _purge(tx, request))

    async def census(self, request: Request) -> Census:
        """See the contract."""
        return await self._reader.run(lambda tx: _census(tx, request))

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
    values = (tx.now, request.scope.tenant, request.most + 1, *by_state, *by_name)
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
    return PruneReply(jobs, results, len(keys))


def _forget(tx: Tx, request: ForgetRequest, tenant: str) -> ForgetReply:
    for row in all_rows(tx.db, _SQL.running_of, (tenant,)):
        ask_to_stop(tx, read_live(row), because(Because.ASKED, request.reason))
    tx.flush()
    running = one_value(tx.db, _SQL.running_count, (tenant,))
    left = read_page(tx, _SQL.contents_of, (tenant, request.most + 1))
    for seq, job in left[: request.most]:
        _erase(tx, seq, job, because(Because.PURGED, request.reason))
    if len(left) > request.most:
        return ForgetReply(request.most, running, is_partial=True)
    tx.flush()
    tx.db.execute(_SQL.keys_of, (tenant,))
    return ForgetReply(len(left), running)


def _erase(tx: Tx, seq: int, job: JobRecord, word: str) -> None:
    if not is_finished(job.state):
        held = find_live(tx, job.id)
        if held is not None:
            job = move(tx, held, stopped(job, State.CANCELLED, word, tx.now))
        tx.flush()
    empty = erased(job)
    rewrite_body(tx, seq, empty)
    rewrite_finished(tx, seq, empty)


def _purge(tx: Tx, request: PurgeRequest) -> PurgeReply:
    values = (request.scope.tenant, request.queue, request.task, request.most + 1)
    rows = all_rows(tx.db, _SQL.waiting, values)
    word = because(Because.PURGED, request.reason)
    for row in rows[: request.most]:
        held = read_live(row)
        move(tx, held, stopped(held.job, State.CANCELLED, word, tx.now))
    return PurgeReply(len(rows[: request.most]), len(rows) > request.most)


def _census(tx: Tx, request: Request) -> Census:
    tenant = request.scope.tenant
    homes = {Home(name): n for name, n in tx.db.execute(_SQL.homes, (tenant,)) if n}
    gates = all_rows(tx.db, _SQL.gates) if tenant is None else []
    return Census(
        homes=homes,
        tenants=tuple(StrandBook(*row) for row in tx.db.execute(_SQL.books, (tenant,))),
        gates=tuple(GateBook(*row) for row in gates),
        idempotency_keys=one_value(tx.db, _SQL.key_count, (tenant,)),
        dedup_keys=one_value(tx.db, _SQL.dedup_count, (tenant,)),
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
