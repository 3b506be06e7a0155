"""The jobs facet: enqueue, read, change while waiting. Each verb is in the file of its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

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
)
from fairlane.store.contract.line import FirstInLine, FirstRequest
from fairlane.store.postgres.app_transaction import enqueue_in
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.jobs.cancel import cancel, condemn
from fairlane.store.postgres.jobs.count import count
from fairlane.store.postgres.jobs.edit import edit, run_now
from fairlane.store.postgres.jobs.enqueue import enqueue
from fairlane.store.postgres.jobs.explain import explain
from fairlane.store.postgres.jobs.find import find, get
from fairlane.store.postgres.jobs.line import first_in_line
from fairlane.store.postgres.jobs.peek import peek
from fairlane.store.postgres.jobs.tally import tally


class PostgresJobs:
    """Jobs as callers and operators see them."""

    def __init__(self, server: Server) -> None:
        """Share the server with the other facets."""
        self._server = server

    async def enqueue(self, request: EnqueueRequest) -> EnqueueReply:
        return await enqueue(self._server, request)

    async def enqueue_in(self, connection: Any, request: EnqueueRequest) -> EnqueueReply:
        return await enqueue_in(self._server, connection, request)

    async def get(self, request: GetRequest) -> Mapping[UUID, JobRecord]:
        return await get(self._server, request)

    async def find(self, request: FindRequest) -> FindReply:
        return await find(self._server, request)

    async def count(self, request: CountRequest) -> CountPage:
        return await count(self._server, request)

    async def tally(self, request: TallyRequest) -> TallyPage:
        return await tally(self._server, request)

    async def peek(self, request: PeekRequest) -> tuple[JobRecord, ...]:
        return await peek(self._server, request)

    async def first_in_line(self, request: FirstRequest) -> tuple[FirstInLine, ...]:
        return await first_in_line(self._server, request)

    async def explain(self, request: ExplainRequest) -> Why | None:
        return await explain(self._server, request)

    async def edit(self, request: EditRequest) -> EditReply:
        return await edit(self._server, request)

    async def cancel(self, request: StopRequest) -> Mapping[UUID, CancelReply]:
        return await cancel(self._server, request)

    async def condemn(self, request: StopRequest) -> tuple[UUID, ...]:
        return await condemn(self._server, request)

    async def run_now(self, request: RunNowRequest) -> tuple[UUID, ...]:
        return await run_now(self._server, request)
