"""The dead-letter facet: read what will not run again by itself, and do what people decide about it."""

from __future__ import annotations

from uuid import UUID

from fairlane.model.lifecycle.states import State
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
)
from fairlane.store.contract.request import check_counts
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.dead.follow import follow
from fairlane.store.redis.dead.reading import find, tally
from fairlane.store.redis.dead.reprocess import reprocess
from fairlane.store.redis.dead.review import delete, review
from fairlane.store.redis.jobs.count import count_letters
from fairlane.store.redis.records.letter import read_review, to_dead_letter
from fairlane.store.redis.records.stored_jobs import StoredJobs


class RedisDead:
    """Dead letters, as they are stored."""

    def __init__(self, client: RedisClient) -> None:
        """Share the connections with the other facets."""
        self._client = client
        self._stored_jobs = StoredJobs(client)

    async def get(self, request: DeadGetRequest) -> DeadLetter | None:
        _, found = await self._stored_jobs.get((request.id,))
        stored = found.get(request.id)
        if (
            stored is None
            or stored.job.state is not State.DEAD
            or not request.scope.covers(stored.job.tenant)
        ):
            return None
        return to_dead_letter(stored.job, read_review(stored.review))

    async def find(self, request: DeadRequest) -> DeadPage:
        return await find(self._client, request)

    async def count(self, request: DeadCountRequest) -> DeadCountPage:
        check_counts(request.limit)
        return await count_letters(self._client, request)

    async def tally(self, request: DeadTallyRequest) -> DeadTallyPage:
        return await tally(self._client, request)

    async def review(self, request: ReviewRequest) -> tuple[ReviewReply, ...]:
        return await review(self._stored_jobs, request)

    async def reprocess(self, request: ReprocessRequest) -> tuple[ReprocessReply, ...]:
        return await reprocess(self._client, request)

    async def delete(self, request: DeleteRequest) -> tuple[UUID, ...]:
        return await delete(self._stored_jobs, request)

    async def follow(self, request: FollowRequest) -> FollowReply:
        return await follow(self._client, request)
