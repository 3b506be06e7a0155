"""The upkeep facet: the schema, retention, counters. Passes that remove something have files of their own."""

from __future__ import annotations

from fairlane.model.lifecycle.states import Home
from fairlane.store.contract.inspection import Inspection, InspectRequest
from fairlane.store.contract.repair import RepairReply, RepairRequest
from fairlane.store.contract.request import CounterPosition, Request, check_page, from_cursor, to_cursor
from fairlane.store.contract.upkeep import (
    Census,
    CensusRequest,
    DedicateRequest,
    ForgetReply,
    ForgetRequest,
    GateCounter,
    MigrateReply,
    PruneReply,
    PruneRequest,
    PurgeReply,
    PurgeRequest,
    TenantCounters,
    not_dedicated,
)
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.inspection import inspect
from fairlane.store.postgres.migrating import migrate, plan
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.statements import load
from fairlane.store.postgres.upkeep.forget import forget
from fairlane.store.postgres.upkeep.prune import prune
from fairlane.store.postgres.upkeep.purge import purge
from fairlane.store.postgres.upkeep.repair import repair


class PostgresUpkeep:
    """The store itself."""

    def __init__(self, server: Server) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._sql = load("upkeep", server.schema)

    async def migrate(self) -> MigrateReply:
        """Migrate, and create the first days of history."""
        async with self._server.apart() as connection:
            reply = await migrate(connection, self._server.location)
        await self._server.fetch(self._sql.create_history_days, self._server.now())
        return reply

    async def plan(self) -> MigrateReply:
        async with self._server.apart() as connection:
            return await plan(connection, self._server.location)

    async def prune(self, request: PruneRequest) -> PruneReply:
        return await prune(self._server, request)

    async def forget(self, request: ForgetRequest) -> ForgetReply:
        return await forget(self._server, request)

    async def purge(self, request: PurgeRequest) -> PurgeReply:
        return await purge(self._server, request)

    async def census(self, request: CensusRequest) -> Census:
        check_page(request.limit)
        start = (
            CounterPosition("", "")
            if request.cursor is None
            else from_cursor(request.cursor, CounterPosition)
        )
        tenant, sql = request.scope.tenant, self._sql
        values = (tenant, start.queue, start.tenant, request.limit)
        async with read_transaction(self._server) as connection:
            edge = await connection.fetchrow(sql.counters_edge, *values)
            rows = await connection.fetch(sql.counters, *values, *(edge or (None, None)))
            counters = tuple(TenantCounters(*row) for row in rows[: request.limit])
            last = None if edge is None else CounterPosition(*edge)
            if rows[request.limit :]:
                last = CounterPosition(counters[-1].queue, counters[-1].tenant)
            cursor = None if last is None else to_cursor(last)
            if request.cursor is not None:
                return Census(
                    homes={}, tenants=counters, gates=(), idempotency_keys=0, dedup_keys=0, cursor=cursor
                )
            gates = await connection.fetch(sql.gates) if tenant is None else []
            homes = await connection.fetch(sql.homes, tenant)
            keys = await connection.fetchrow(sql.keys, tenant)
        return Census(
            homes={Home(name): number for name, number in homes if number},
            tenants=counters,
            gates=tuple(GateCounter(*row) for row in gates),
            idempotency_keys=keys[0],
            dedup_keys=keys[1],
            cursor=cursor,
        )

    async def repair(self, request: RepairRequest) -> RepairReply:
        return await repair(self._server, request)

    async def gates(self, request: Request) -> tuple[GateCounter, ...]:
        rows = await self._server.fetch(self._sql.gates) if request.scope.tenant is None else []
        return tuple(GateCounter(*row) for row in rows)

    async def inspect(self, request: InspectRequest) -> Inspection:
        return await inspect(self._server, request)

    async def dedicate(self, request: DedicateRequest) -> None:
        async with self._server.transaction() as connection:
            before = await connection.fetchval(self._sql.purpose)
            if before == request.purpose:
                return
            if before is not None or await connection.fetchval(self._sql.has_jobs):
                raise ValueError(not_dedicated(before))
            # Empty so far, but somebody may be about to enqueue a job, or to dedicate the store.
            await connection.execute(self._sql.lock_jobs)
            before = await connection.fetchval(self._sql.purpose)
            if await connection.fetchval(self._sql.has_jobs) or before not in {None, request.purpose}:
                raise ValueError(not_dedicated(before))
            await connection.execute(self._sql.purpose_set, request.purpose)

    async def purpose(self, request: Request) -> str | None:  # noqa: ARG002 (everybody may know)
        found: str | None = await self._server.value(self._sql.purpose)
        return found

    async def aclose(self) -> None:
        await self._server.close()
