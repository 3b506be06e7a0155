"""The claims facet: claim, renew, settle, promote, reclaim, expire."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from fairlane.model.errors import Unsupported
from fairlane.store.contract.claims import (
    ClaimReply,
    ClaimRequest,
    ExpireReply,
    PassRequest,
    PromoteReply,
    ReclaimReply,
    ReclaimRequest,
    RenewReply,
    RenewRequest,
    RevokeReply,
    RevokeRequest,
    SettleReply,
    SettleRequest,
    StuckReply,
    StuckRequest,
    WorkerRequest,
)
from fairlane.store.redis.claims.claim import claim
from fairlane.store.redis.claims.expire import expire
from fairlane.store.redis.claims.promote import promote
from fairlane.store.redis.claims.reclaim import reclaim
from fairlane.store.redis.claims.renew import cancel_asked, renew
from fairlane.store.redis.claims.revoke import revoke
from fairlane.store.redis.claims.settle import settle
from fairlane.store.redis.claims.stuck import take_stuck
from fairlane.store.redis.client import NO_JOINING, RedisClient
from fairlane.store.redis.records.stored_jobs import StoredJobs


class RedisClaims:
    """Jobs as workers and duties move them."""

    concurrent_calls: Final = 2
    """The server works on one call while the handlers of the other run."""

    def __init__(self, client: RedisClient) -> None:
        """Share the connections with the other facets."""
        self._client = client
        self._stored_jobs = StoredJobs(client)

    async def claim(self, request: ClaimRequest) -> ClaimReply:
        return await claim(self._client, request)

    async def renew(self, request: RenewRequest) -> RenewReply:
        return await renew(self._client, request)

    async def settle(self, request: SettleRequest) -> SettleReply:
        return await settle(self._client, request)

    async def settle_in(self, connection: Any, request: SettleRequest) -> SettleReply:  # noqa: ARG002
        raise Unsupported(NO_JOINING)

    async def cancel_asked(self, request: WorkerRequest) -> tuple[UUID, ...]:
        return await cancel_asked(self._stored_jobs, request)

    async def reclaim(self, request: ReclaimRequest) -> ReclaimReply:
        return await reclaim(self._stored_jobs, request)

    async def take_stuck(self, request: StuckRequest) -> StuckReply:
        return await take_stuck(self._stored_jobs, request)

    async def revoke(self, request: RevokeRequest) -> RevokeReply:
        return await revoke(self._stored_jobs, request)

    async def promote(self, request: PassRequest) -> PromoteReply:
        return await promote(self._client, request)

    async def expire(self, request: PassRequest) -> ExpireReply:
        return await expire(self._stored_jobs, request)
