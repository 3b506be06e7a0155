"""The jobs facet: put in, looked at, changed while they wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import CancelReply
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
)
from fairlane.store.postgres.connect import Server
from fairlane.store.postgres.counting import count
from fairlane.store.postgres.enqueue import enqueue
from fairlane.store.postgres.explaining import explain
from fairlane.store.postgres.finding import find, get
from fairlane.store.postgres.joining import enqueue_in
from fairlane.store.postgres.moving import cancel, condemn, edit, run_now
from fairlane.store.postgres.peeking import peek
from fairlane.store.postgres.tallying import tally


class PostgresJobs:
    """Jobs as callers and operators see them."""

    def __init__(self, server: Server) -> None:
        """Share the server with the other facets."""
        self._server = server

    async def enqueue(self, request: EnqueueRequest) -> EnqueueReply:
        """See the contract."""
        return await enqueue(self._server, request)

    async def enqueue_in(self, connection: Any, request: EnqueueRequest) -> EnqueueReply:
        """See the contract."""
        return await enqueue_in(self._server, connection, request)

    async def get(self, request: GetRequest) -> Mapping[UUID, JobRecord]:
        """See the contract."""
        return await get(self._server, request)

    async def find(self, request: FindRequest) -> FindReply:
        """See the contract."""
        return await find(self._server, request)

    async def count(self, request: CountRequest) -> CountPage:
        """See the contract."""
        return await count(self._server, request)

    async def tally(self, request: TallyRequest) -> TallyPage:
        """See the contract."""
        return await tally(self._server, request)

    async def peek(self, request: PeekRequest) -> tuple[JobRecord, ...]:
        """See the contract."""
        return await peek(self._server, request)

    async def explain(self, request: ExplainRequest) -> Why | None:
        """See the contract."""
        return await explain(self._server, request)

    async def edit(self, request: EditRequest) -> EditReply:
        """See the contract."""
        return await edit(self._server, request)

    async def cancel(self, request: StopRequest) -> Mapping[UUID, CancelReply]:
        """See the contract."""
        return await cancel(self._server, request)

    async def condemn(self, request: StopRequest) -> tuple[UUID, ...]:
        """See the contract."""
        return await condemn(self._server, request)

    async def run_now(self, request: RunNowRequest) -> tuple[UUID, ...]:
        """See the contract."""
        return await run_now(self._server, request)
