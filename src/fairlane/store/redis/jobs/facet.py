"""The jobs facet: put in, looked at, changed while they wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from fairlane.model.errors import Unsupported
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import CancelReply
from fairlane.store.contract.jobs import (
    CountPage,
    CountRequest,
    EditReply,
    EditRequest,
    EnqueueReply,
    EnqueueRequest,
    ExplainRequest,
    FindReply,
    FindRequest,
    GetRequest,
    PeekRequest,
    RunNowRequest,
    StopRequest,
    TallyPage,
    TallyRequest,
    Why,
    check_tenants,
)
from fairlane.store.contract.line import FirstInLine, FirstRequest
from fairlane.store.contract.request import check_counts, check_page
from fairlane.store.redis.client import NO_JOINING, RedisClient
from fairlane.store.redis.jobs.cancel import cancel, move_to_dead
from fairlane.store.redis.jobs.count import count
from fairlane.store.redis.jobs.edit import edit, run_now
from fairlane.store.redis.jobs.enqueue import enqueue
from fairlane.store.redis.jobs.explain import explain
from fairlane.store.redis.jobs.find import find
from fairlane.store.redis.jobs.line import first_in_line
from fairlane.store.redis.jobs.peek import peek
from fairlane.store.redis.jobs.tally import tally
from fairlane.store.redis.records.stored_jobs import StoredJobs


class RedisJobs:
    """Jobs as callers and operators see them."""

    def __init__(self, client: RedisClient) -> None:
        """Share the connections with the other facets."""
        self._client = client
        self._stored_jobs = StoredJobs(client)

    async def enqueue(self, request: EnqueueRequest) -> EnqueueReply:
        check_tenants(request)
        return await enqueue(self._client, request) if request.jobs else EnqueueReply()

    async def enqueue_in(self, connection: Any, request: EnqueueRequest) -> EnqueueReply:  # noqa: ARG002
        check_tenants(request)
        raise Unsupported(NO_JOINING)

    async def get(self, request: GetRequest) -> Mapping[UUID, JobRecord]:
        _, found = await self._stored_jobs.get(request.ids)
        return {id: stored.job for id, stored in found.items() if request.scope.covers(stored.job.tenant)}

    async def find(self, request: FindRequest) -> FindReply:
        return await find(self._client, request)

    async def count(self, request: CountRequest) -> CountPage:
        check_counts(request.limit)
        return await count(self._client, request)

    async def tally(self, request: TallyRequest) -> TallyPage:
        return await tally(self._client, request)

    async def peek(self, request: PeekRequest) -> tuple[JobRecord, ...]:
        check_page(request.limit)
        ids = await peek(self._client, request)
        _, found = await self._stored_jobs.get(ids)
        return tuple(found[id].job for id in ids if id in found)

    async def first_in_line(self, request: FirstRequest) -> tuple[FirstInLine, ...]:
        return await first_in_line(self._client, request)

    async def explain(self, request: ExplainRequest) -> Why | None:
        return await explain(self._client, request)

    async def edit(self, request: EditRequest) -> EditReply:
        return await edit(self._stored_jobs, request)

    async def cancel(self, request: StopRequest) -> Mapping[UUID, CancelReply]:
        return await cancel(self._stored_jobs, request)

    async def condemn(self, request: StopRequest) -> tuple[UUID, ...]:
        return await move_to_dead(self._stored_jobs, request)

    async def run_now(self, request: RunNowRequest) -> tuple[UUID, ...]:
        return await run_now(self._stored_jobs, request)
