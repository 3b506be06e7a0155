"""The claims facet: claimed, renewed, settled, promoted, reclaimed, expired."""

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
    SettleReply,
    SettleRequest,
    WorkerRequest,
)
from fairlane.store.contract.request import check_serves_all
from fairlane.store.postgres.claiming import claim, promote
from fairlane.store.postgres.connect import Server
from fairlane.store.postgres.expiring import expire
from fairlane.store.postgres.joining import settle_in
from fairlane.store.postgres.reclaiming import reclaim
from fairlane.store.postgres.renewing import asked_to_cancel, renew
from fairlane.store.postgres.settling import settle
from fairlane.store.postgres.sweeping import Floor


class PostgresClaims:
    """Jobs as workers and duties move them."""

    turns_at_once: Final = 2
    """The server works on one while the handlers of the other run."""

    def __init__(self, server: Server) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._reclaim_floor = Floor()
        self._expire_floor = Floor()

    async def claim(self, request: ClaimRequest) -> ClaimReply:
        """See the contract."""
        check_serves_all(request)
        return await claim(self._server, request)

    async def renew(self, request: RenewRequest) -> RenewReply:
        """See the contract."""
        return await renew(self._server, request)

    async def settle(self, request: SettleRequest) -> SettleReply:
        """See the contract: settling and claiming are two steps (S35), and the second may not be reached."""
        if request.claim is not None:
            check_serves_all(request.claim)
        reply = await settle(self._server, request)
        if request.claim is None:
            return reply
        try:
            claimed = await self.claim(request.claim)
        except StoreError:  # what is settled is; whoever asks again is told what is wrong
            claimed = ClaimReply(is_partial=True)
        return SettleReply(reply.settled, reply.stale, claimed)

    async def settle_in(self, connection: Any, request: SettleRequest) -> SettleReply:
        """See the contract."""
        return await settle_in(self._server, connection, request)

    async def asked_to_cancel(self, request: WorkerRequest) -> tuple[UUID, ...]:
        """See the contract."""
        return await asked_to_cancel(self._server, request)

    async def reclaim(self, request: ReclaimRequest) -> ReclaimReply:
        """See the contract."""
        check_serves_all(request)
        return await reclaim(self._server, self._reclaim_floor, request)

    async def promote(self, request: PassRequest) -> PromoteReply:
        """See the contract."""
        check_serves_all(request)
        return await promote(self._server, request)

    async def expire(self, request: PassRequest) -> ExpireReply:
        """See the contract."""
        check_serves_all(request)
        return await expire(self._server, self._expire_floor, request)
