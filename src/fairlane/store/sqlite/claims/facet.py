"""The claims facet: each verb checks its request and runs on the writer or the reader thread."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec

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
from fairlane.store.sqlite.app_transaction import AppTransaction
from fairlane.store.sqlite.claims.claim import claim
from fairlane.store.sqlite.claims.expire import expire
from fairlane.store.sqlite.claims.promote import promote
from fairlane.store.sqlite.claims.reclaim import reclaim
from fairlane.store.sqlite.claims.renew import cancel_asked, renew
from fairlane.store.sqlite.claims.revoke import revoke
from fairlane.store.sqlite.claims.settle import settle
from fairlane.store.sqlite.claims.stuck import take_stuck
from fairlane.store.sqlite.threads import ReaderThread, WriterThread


class SqliteClaims:
    """What workers and duties do with jobs."""

    concurrent_calls: Final = 1
    """The store works in this process: more calls at once would only compete with the handlers."""

    def __init__(self, writer: WriterThread, reader: ReaderThread, app_transaction: AppTransaction) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader
        self._app_transaction = app_transaction

    async def claim(self, request: ClaimRequest) -> ClaimReply:
        check_serves_all(request)
        return await self._writer.run(lambda tx: claim(tx, request))

    async def renew(self, request: RenewRequest) -> RenewReply:
        return await self._writer.run(lambda tx: renew(tx, request))

    async def settle(self, request: SettleRequest) -> SettleReply:
        # Settling and claiming share a commit.
        if request.claim is not None:
            check_serves_all(request.claim)
        return await self._writer.run(lambda tx: settle(tx, request))

    async def settle_in(self, connection: Any, request: SettleRequest) -> SettleReply:
        alone = msgspec.structs.replace(request, claim=None)
        return self._app_transaction.run(connection, lambda tx: settle(tx, alone))

    async def cancel_asked(self, request: WorkerRequest) -> tuple[UUID, ...]:
        return await self._reader.run(lambda tx: cancel_asked(tx, request))

    async def reclaim(self, request: ReclaimRequest) -> ReclaimReply:
        check_serves_all(request)
        return await self._writer.run(lambda tx: reclaim(tx, request))

    async def take_stuck(self, request: StuckRequest) -> StuckReply:
        check_serves_all(request)
        return await self._writer.run(lambda tx: take_stuck(tx, request))

    async def revoke(self, request: RevokeRequest) -> RevokeReply:
        return await self._writer.run(lambda tx: revoke(tx, request))

    async def promote(self, request: PassRequest) -> PromoteReply:
        check_serves_all(request)
        return await self._writer.run(lambda tx: promote(tx, request))

    async def expire(self, request: PassRequest) -> ExpireReply:
        check_serves_all(request)
        return await self._writer.run(lambda tx: expire(tx, request))
