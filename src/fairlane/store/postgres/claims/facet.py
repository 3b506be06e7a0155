"""The claims facet: claim, renew, settle, promote, reclaim, expire. Each has a file of its own."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from fairlane.model.errors import StoreError
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
from fairlane.store.contract.request import check_serves_all
from fairlane.store.postgres.app_transaction import settle_in
from fairlane.store.postgres.claims.claim import claim
from fairlane.store.postgres.claims.expire import expire
from fairlane.store.postgres.claims.promote import promote
from fairlane.store.postgres.claims.reclaim import ScanStart, reclaim
from fairlane.store.postgres.claims.renew import cancel_asked, renew
from fairlane.store.postgres.claims.revoke import revoke
from fairlane.store.postgres.claims.settle import settle
from fairlane.store.postgres.claims.stuck import take_stuck
from fairlane.store.postgres.connection import Server


class PostgresClaims:
    """Jobs as workers and duties move them."""

    concurrent_calls: Final = 2
    """The server works on one call while the handlers of the other run."""

    def __init__(self, server: Server) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._reclaim_from = ScanStart()
        self._expire_from = ScanStart()

    async def claim(self, request: ClaimRequest) -> ClaimReply:
        check_serves_all(request)
        return await claim(self._server, request)

    async def renew(self, request: RenewRequest) -> RenewReply:
        return await renew(self._server, request)

    async def cancel_asked(self, request: WorkerRequest) -> tuple[UUID, ...]:
        return await cancel_asked(self._server, request)

    async def settle(self, request: SettleRequest) -> SettleReply:
        """Settle, then claim. Settling and claiming are two steps (S35), and the second may fail."""
        if request.claim is not None:
            check_serves_all(request.claim)
        reply = await settle(self._server, request)
        if request.claim is None:
            return reply
        try:
            claimed = await self.claim(request.claim)
        except StoreError:  # what is settled stays so; the worker asks again and is told what is wrong
            claimed = ClaimReply(is_partial=True)
        return SettleReply(reply.settled, reply.stale, claimed)

    async def settle_in(self, connection: Any, request: SettleRequest) -> SettleReply:
        return await settle_in(self._server, connection, request)

    async def reclaim(self, request: ReclaimRequest) -> ReclaimReply:
        check_serves_all(request)
        return await reclaim(self._server, self._reclaim_from, request)

    async def take_stuck(self, request: StuckRequest) -> StuckReply:
        check_serves_all(request)
        return await take_stuck(self._server, request)

    async def revoke(self, request: RevokeRequest) -> RevokeReply:
        return await revoke(self._server, request)

    async def promote(self, request: PassRequest) -> PromoteReply:
        check_serves_all(request)
        return await promote(self._server, request)

    async def expire(self, request: PassRequest) -> ExpireReply:
        check_serves_all(request)
        return await expire(self._server, self._expire_from, request)
