"""The jobs facet: each verb checks its request and runs on the writer or the reader thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from fairlane.model.errors import EnqueueUnknown
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
    check_edit,
    check_tenants,
)
from fairlane.store.contract.line import FirstInLine, FirstRequest, lines_in
from fairlane.store.contract.request import check_counts, check_page
from fairlane.store.sqlite.app_transaction import AppTransaction
from fairlane.store.sqlite.jobs.cancel import cancel, condemn
from fairlane.store.sqlite.jobs.count import count
from fairlane.store.sqlite.jobs.edit import edit, run_now
from fairlane.store.sqlite.jobs.enqueue import enqueue
from fairlane.store.sqlite.jobs.explain import explain
from fairlane.store.sqlite.jobs.find import find
from fairlane.store.sqlite.jobs.line import first_in_line
from fairlane.store.sqlite.jobs.peek import peek
from fairlane.store.sqlite.jobs.tally import tally
from fairlane.store.sqlite.tables.job_tables import find_any
from fairlane.store.sqlite.threads import ReaderThread, WriterThread


class SqliteJobs:
    """Jobs as callers and operators see them."""

    def __init__(self, writer: WriterThread, reader: ReaderThread, app_transaction: AppTransaction) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader
        self._app_transaction = app_transaction

    async def enqueue(self, request: EnqueueRequest) -> EnqueueReply:
        check_tenants(request)
        if not request.jobs:
            return EnqueueReply()
        return await self._writer.run(lambda tx: enqueue(tx, request), EnqueueUnknown)

    async def enqueue_in(self, connection: Any, request: EnqueueRequest) -> EnqueueReply:
        check_tenants(request)
        return self._app_transaction.run(connection, lambda tx: enqueue(tx, request))

    async def get(self, request: GetRequest) -> Mapping[UUID, JobRecord]:
        found = await self._reader.run(lambda tx: find_any(tx, request.ids))
        return {id: job for id, job in found.items() if request.scope.covers(job.tenant)}

    async def find(self, request: FindRequest) -> FindReply:
        return await self._reader.run(lambda tx: find(tx, request))

    async def count(self, request: CountRequest) -> CountPage:
        check_counts(request.limit)
        return await self._reader.run(lambda tx: count(tx, request))

    async def tally(self, request: TallyRequest) -> TallyPage:
        return await self._reader.run(lambda tx: tally(tx, request))

    async def peek(self, request: PeekRequest) -> tuple[JobRecord, ...]:
        check_page(request.limit)
        return await self._writer.run(lambda tx: peek(tx, request))

    async def first_in_line(self, request: FirstRequest) -> tuple[FirstInLine, ...]:
        lines = lines_in(request)
        return await self._reader.run(lambda tx: first_in_line(tx, lines))

    async def explain(self, request: ExplainRequest) -> Why | None:
        return await self._reader.run(lambda tx: explain(tx, request))

    async def edit(self, request: EditRequest) -> EditReply:
        check_edit(request)
        return await self._writer.run(lambda tx: edit(tx, request))

    async def cancel(self, request: StopRequest) -> Mapping[UUID, CancelReply]:
        return await self._writer.run(lambda tx: cancel(tx, request))

    async def condemn(self, request: StopRequest) -> tuple[UUID, ...]:
        return await self._writer.run(lambda tx: condemn(tx, request))

    async def run_now(self, request: RunNowRequest) -> tuple[UUID, ...]:
        return await self._writer.run(lambda tx: run_now(tx, request))
