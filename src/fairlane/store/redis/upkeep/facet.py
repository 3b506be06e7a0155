"""The upkeep facet: migrations, retention, counters, what the store is for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fairlane.store.contract.inspection import Inspection, InspectRequest
from fairlane.store.contract.repair import RepairReply, RepairRequest
from fairlane.store.contract.request import Request
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
    not_dedicated,
)
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.inspection import inspect
from fairlane.store.redis.upkeep.census import census, gates
from fairlane.store.redis.upkeep.forget import forget, purge
from fairlane.store.redis.upkeep.prune import prune
from fairlane.store.redis.upkeep.repair import repair

SCHEMA = 1


class RedisUpkeep:
    """The store itself."""

    def __init__(self, client: RedisClient, close: Callable[[], Awaitable[None]]) -> None:
        """Share the connections with the other facets."""
        self._client = client
        self._close = close

    async def migrate(self) -> MigrateReply:
        await self._client.ask("HSETNX", self._client.keys("meta"), "schema", SCHEMA)
        return MigrateReply(SCHEMA, SCHEMA)

    async def plan(self) -> MigrateReply:
        return MigrateReply(SCHEMA, SCHEMA)

    async def prune(self, request: PruneRequest) -> PruneReply:
        return await prune(self._client, request)

    async def forget(self, request: ForgetRequest) -> ForgetReply:
        return await forget(self._client, request)

    async def purge(self, request: PurgeRequest) -> PurgeReply:
        return await purge(self._client, request)

    async def census(self, request: CensusRequest) -> Census:
        return await census(self._client, request)

    async def repair(self, request: RepairRequest) -> RepairReply:
        return await repair(self._client, request)

    async def gates(self, request: Request) -> tuple[GateCounter, ...]:
        return await gates(self._client, request)

    async def inspect(self, request: InspectRequest) -> Inspection:
        return await inspect(self._client, request)

    async def dedicate(self, request: DedicateRequest) -> None:
        before, is_done = await self._client.run("upkeep/dedicate", request.purpose)
        if not is_done:
            raise ValueError(not_dedicated(before.decode() or None))

    async def purpose(self, request: Request) -> str | None:  # noqa: ARG002 (everybody may know)
        found = await self._client.ask("HGET", self._client.keys("meta"), "purpose")
        return None if found is None else found.decode()

    async def aclose(self) -> None:
        await self._close()
