"""The history facet: finished jobs on their way into an archive, and back (S105, S116)."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from fairlane.model.finished_job import FinishedJob, pack_finished, unpack_finished
from fairlane.model.review import ReviewRecord
from fairlane.store.contract.history import ArchiveBatch, BatchDoneRequest, BatchRequest, RestoreRequest
from fairlane.store.contract.request import Request, check_serves_all
from fairlane.store.sqlite.dead.letters import write_review
from fairlane.store.sqlite.query import all_rows, one_row, one_value
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_tables import insert_finished
from fairlane.store.sqlite.threads import ReaderThread, WriterThread
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("history")

_NO_REVIEW: Final = ReviewRecord()


class SqliteHistory:
    """Batches in two tables."""

    def __init__(self, writer: WriterThread, reader: ReaderThread) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader

    async def next_batch(self, request: BatchRequest) -> ArchiveBatch | None:
        check_serves_all(request)
        return await self._writer.run(lambda tx: _next_batch(tx, request))

    async def batch_done(self, request: BatchDoneRequest) -> bool:
        check_serves_all(request)

        def remove(tx: Transaction) -> bool:
            if not all_rows(tx.db, _SQL.remove_batch, (request.number,)):
                return False
            tx.db.execute(_SQL.remove_jobs, (request.number,))
            return True

        return await self._writer.run(remove)

    async def waiting(self, request: Request) -> int:
        return await self._reader.run(lambda tx: one_value(tx.db, _SQL.waiting, (request.scope.tenant,)))

    async def restore(self, request: RestoreRequest) -> tuple[UUID, ...]:
        return await self._writer.run(lambda tx: _restore(tx, request))


def add_to_batch(tx: Transaction, jobs: list[FinishedJob]) -> None:
    """Add jobs that are being removed to the open batch."""
    if not jobs:
        return
    row = one_row(tx.db, _SQL.open_batch, ()) or one_row(tx.db, _SQL.begin_batch, ())
    number = None if row is None else row[0]
    tx.write_all(
        _SQL.insert_job, [(number, one.job.id.bytes, one.job.tenant, pack_finished(one)) for one in jobs]
    )


def forget_batches(tx: Transaction, tenant: str) -> None:
    """Remove a tenant's jobs from all batches."""
    tx.db.execute(_SQL.forget, (tenant,))


def _next_batch(tx: Transaction, request: BatchRequest) -> ArchiveBatch | None:
    row = one_row(tx.db, _SQL.oldest_batch, ())
    if row is None:
        return None
    number, closed_at = row
    if closed_at is None:
        closed_at = tx.now
        tx.db.execute(_SQL.close_batch, (number, closed_at))
    after = b"" if request.after is None else request.after.bytes
    rows = all_rows(tx.db, _SQL.page, (number, after, request.limit + 1))
    jobs = tuple(unpack_finished(record) for _, record in rows[: request.limit])
    return ArchiveBatch(number, closed_at, jobs, is_last=len(rows) <= request.limit)


def _restore(tx: Transaction, request: RestoreRequest) -> tuple[UUID, ...]:
    new = [one for one in request.jobs if one_row(tx.db, _SQL.is_known, (one.job.id.bytes,)) is None]
    for seq, one in enumerate(new, tx.take_seqs(len(new))):
        insert_finished(tx, seq, one.job)
        if one.review is not None and one.review != _NO_REVIEW:
            write_review(tx, seq, one.review)
    return tuple(one.job.id for one in new)
