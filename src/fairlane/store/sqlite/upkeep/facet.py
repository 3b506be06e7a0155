"""The upkeep facet: each verb checks its request and runs on the writer or the reader thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fairlane.store.contract.inspection import Inspection, InspectRequest
from fairlane.store.contract.repair import RepairReply, RepairRequest
from fairlane.store.contract.request import Request, check_page
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
)
from fairlane.store.sqlite.inspection import inspect
from fairlane.store.sqlite.threads import ReaderThread, WriterThread
from fairlane.store.sqlite.upkeep.census import census, dedicate, gates, purpose
from fairlane.store.sqlite.upkeep.forget import forget
from fairlane.store.sqlite.upkeep.prune import prune
from fairlane.store.sqlite.upkeep.purge import purge
from fairlane.store.sqlite.upkeep.repair import repair


class SqliteUpkeep:
    """The store's own maintenance."""

    def __init__(
        self,
        writer: WriterThread,
        reader: ReaderThread,
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
        return await self._migrate()

    async def plan(self) -> MigrateReply:
        return await self._plan()

    async def prune(self, request: PruneRequest) -> PruneReply:
        return await self._writer.run(lambda tx: prune(tx, request))

    async def forget(self, request: ForgetRequest) -> ForgetReply:
        tenant = request.scope.tenant
        if tenant is None:
            message = "forget needs the scope of one tenant"
            raise ValueError(message)
        return await self._writer.run(lambda tx: forget(tx, request, tenant))

    async def purge(self, request: PurgeRequest) -> PurgeReply:
        return await self._writer.run(lambda tx: purge(tx, request))

    async def census(self, request: CensusRequest) -> Census:
        check_page(request.limit)
        return await self._reader.run(lambda tx: census(tx, request))

    async def repair(self, request: RepairRequest) -> RepairReply:
        thread = self._writer if request.restores else self._reader
        return await thread.run(lambda tx: repair(tx, request))

    async def gates(self, request: Request) -> tuple[GateCounter, ...]:
        if request.scope.tenant is not None:
            return ()
        return await self._reader.run(gates)

    async def inspect(self, request: InspectRequest) -> Inspection:
        return await self._reader.run(lambda tx: inspect(tx, request))

    async def dedicate(self, request: DedicateRequest) -> None:
        await self._writer.run(lambda tx: dedicate(tx, request.purpose))

    async def purpose(self, request: Request) -> str | None:  # noqa: ARG002 (everybody may know)
        return await self._reader.run(purpose)

    async def aclose(self) -> None:
        await self._close()
