"""The history facet of the oracle."""

from __future__ import annotations

from uuid import UUID

from fairlane.store.contract.history import ArchiveBatch, BatchDoneRequest, BatchRequest, RestoreRequest
from fairlane.store.contract.request import Request, check_serves_all
from tests.oracle.books import Batch
from tests.oracle.core import Core


class OracleHistory:
    """Batches in a list, the oldest first."""

    def __init__(self, core: Core) -> None:
        """Share the state with the other facets."""
        self._core = core

    async def next_batch(self, request: BatchRequest) -> ArchiveBatch | None:
        check_serves_all(request)
        batches = self._core.books.batches
        if not batches:
            return None
        number = min(batches)
        batch = batches[number]
        batch.closed_at = batch.closed_at or self._core.now()
        after = b"" if request.after is None else request.after.bytes
        left = sorted(
            (one for one in batch.jobs if one.job.id.bytes > after), key=lambda one: one.job.id.bytes
        )
        page = tuple(left[: request.limit])
        return ArchiveBatch(number, batch.closed_at, page, is_last=len(left) <= request.limit)

    async def batch_done(self, request: BatchDoneRequest) -> bool:
        check_serves_all(request)
        batch = self._core.books.batches.get(request.number, Batch())
        if batch.closed_at is None:
            return False
        del self._core.books.batches[request.number]
        return True

    async def waiting(self, request: Request) -> int:
        batches = self._core.books.batches.values()
        return sum(request.scope.covers(one.job.tenant) for batch in batches for one in batch.jobs)

    async def restore(self, request: RestoreRequest) -> tuple[UUID, ...]:
        new = [one for one in request.jobs if one.job.id not in self._core.books.jobs]
        for one in new:
            self._core.books.take_back(one)
        return tuple(one.job.id for one in new)
