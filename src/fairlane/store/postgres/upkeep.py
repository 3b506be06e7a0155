"""The upkeep facet: the schema, what is kept and for how long, the store's own books."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fairlane.model.lifecycle import Home
from fairlane.store.contract.inspection import Inspection, InspectRequest
from fairlane.store.contract.request import BookPlace, Request, check_page, from_cursor, to_cursor
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
from fairlane.store.postgres.connect import Server
from fairlane.store.postgres.forgetting import forget
from fairlane.store.postgres.inspection import inspect
from fairlane.store.postgres.pruning import prune
from fairlane.store.postgres.purging import purge
from fairlane.store.postgres.reading import reading
from fairlane.store.postgres.statements import load


class PostgresUpkeep:
    """The store itself."""

    def __init__(
        self,
        server: Server,
        migrate: Callable[[], Awaitable[MigrateReply]],
        plan: Callable[[], Awaitable[MigrateReply]],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._migrate = migrate
        self._plan = plan
        self._close = close
        self._sql = load("upkeep", server.schema)

    async def migrate(self) -> MigrateReply:
        """See the contract. The first days of history are made, too."""
        reply = await self._migrate()
        await self._server.fetch(self._sql.make_days, self._server.now())
        return reply

    async def plan(self) -> MigrateReply:
        """See the contract."""
        return await self._plan()

    async def prune(self, request: PruneRequest) -> PruneReply:
        """See the contract."""
        return await prune(self._server, request)

    async def forget(self, request: ForgetRequest) -> ForgetReply:
        """See the contract."""
        return await forget(self._server, request)

    async def purge(self, request: PurgeRequest) -> PurgeReply:
        """See the contract."""
        return await purge(self._server, request)

    async def census(self, request: CensusRequest) -> Census:
        """See the contract."""
        check_page(request.limit)
        start = BookPlace("", "") if request.cursor is None else from_cursor(request.cursor, BookPlace)
        tenant, sql = request.scope.tenant, self._sql
        values = (tenant, start.queue, start.tenant, request.limit)
        async with reading(self._server) as connection:
            edge = await connection.fetchrow(sql.books_edge, *values)
            rows = await connection.fetch(sql.books, *values, *(edge or (None, None)))
            books = tuple(StrandBook(*row) for row in rows[: request.limit])
            last = None if edge is None else BookPlace(*edge)
            if rows[request.limit :]:
                last = BookPlace(books[-1].queue, books[-1].tenant)
            cursor = None if last is None else to_cursor(last)
            if request.cursor is not None:
                return Census(
                    homes={}, tenants=books, gates=(), idempotency_keys=0, dedup_keys=0, cursor=cursor
                )
            gates = await connection.fetch(sql.gates) if tenant is None else []
            homes = await connection.fetch(sql.homes, tenant)
            keys = await connection.fetchrow(sql.keys, tenant)
        return Census(
            homes={Home(name): number for name, number in homes if number},
            tenants=books,
            gates=tuple(GateBook(*row) for row in gates),
            idempotency_keys=keys[0],
            dedup_keys=keys[1],
            cursor=cursor,
        )

    async def gates(self, request: Request) -> tuple[GateBook, ...]:
        """See the contract."""
        rows = await self._server.fetch(self._sql.gates) if request.scope.tenant is None else []
        return tuple(GateBook(*row) for row in rows)

    async def inspect(self, request: InspectRequest) -> Inspection:
        """See the contract."""
        return await inspect(self._server, request)

    async def dedicate(self, request: DedicateRequest) -> None:
        """See the contract."""
        async with self._server.transaction() as connection:
            before = await connection.fetchval(self._sql.purpose)
            if before == request.purpose:
                return
            if before is not None or await connection.fetchval(self._sql.has_jobs):
                raise ValueError(not_dedicated(before))
            # Nothing so far, but somebody may be about to bring one in, or to dedicate it himself.
            await connection.execute(self._sql.keep_out)
            before = await connection.fetchval(self._sql.purpose)
            if await connection.fetchval(self._sql.has_jobs) or before not in {None, request.purpose}:
                raise ValueError(not_dedicated(before))
            await connection.execute(self._sql.purpose_set, request.purpose)

    async def purpose(self, request: Request) -> str | None:  # noqa: ARG002 (everybody may know)
        """See the contract."""
        found: str | None = await self._server.value(self._sql.purpose)
        return found

    async def aclose(self) -> None:
        """See the contract."""
        await self._close()
