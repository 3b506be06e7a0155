"""The dead-letter facet: read jobs that will not run again unless a person says so, and decide about them."""

from __future__ import annotations

from uuid import UUID

from fairlane.store.contract.dead import (
    DeadCountPage,
    DeadCountRequest,
    DeadGetRequest,
    DeadLetter,
    DeadPage,
    DeadRequest,
    DeadTallyPage,
    DeadTallyRequest,
    DeleteRequest,
    FollowReply,
    FollowRequest,
    ReprocessReply,
    ReprocessRequest,
    ReviewReply,
    ReviewRequest,
    check_dead_ids,
    check_reprocess,
)
from fairlane.store.contract.request import check_reading, check_serves_all
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.dead.count import count
from fairlane.store.postgres.dead.find import find, get
from fairlane.store.postgres.dead.follow import FollowStart, follow
from fairlane.store.postgres.dead.reprocess import reprocess
from fairlane.store.postgres.dead.review import delete, review
from fairlane.store.postgres.dead.tally import tally


class PostgresDead:
    """Dead letters."""

    def __init__(self, server: Server) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._follow_from = FollowStart()

    async def get(self, request: DeadGetRequest) -> DeadLetter | None:
        return await get(self._server, request)

    async def find(self, request: DeadRequest) -> DeadPage:
        return await find(self._server, request)

    async def count(self, request: DeadCountRequest) -> DeadCountPage:
        return await count(self._server, request)

    async def tally(self, request: DeadTallyRequest) -> DeadTallyPage:
        check_reading(request.limit)
        return await tally(self._server, request)

    async def review(self, request: ReviewRequest) -> tuple[ReviewReply, ...]:
        check_dead_ids(len(request.ids))
        return await review(self._server, request)

    async def reprocess(self, request: ReprocessRequest) -> tuple[ReprocessReply, ...]:
        check_reprocess(request)
        return await reprocess(self._server, request)

    async def delete(self, request: DeleteRequest) -> tuple[UUID, ...]:
        check_dead_ids(len(request.ids))
        return await delete(self._server, request)

    async def follow(self, request: FollowRequest) -> FollowReply:
        check_serves_all(request)
        return await follow(self._server, self._follow_from, request)
