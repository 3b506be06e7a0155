"""The history facet: finished jobs on their way into an archive, and back (S105, S116)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from fairlane.model.finished_job import FinishedJob, pack_finished, unpack_finished
from fairlane.model.job import JobRecord
from fairlane.model.journal.facts import last_failure
from fairlane.model.lifecycle.states import State
from fairlane.model.review import ReviewRecord
from fairlane.store.contract.history import ArchiveBatch, BatchDoneRequest, BatchRequest, RestoreRequest
from fairlane.store.contract.request import Request, check_serves_all
from fairlane.store.postgres.columns import JOB
from fairlane.store.postgres.connection import Connection, Server
from fairlane.store.postgres.dead.letters import write_reviews
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.rows import attempts_value
from fairlane.store.postgres.statements import load

_COLUMNS: Final = tuple(column.name for column in JOB if column.group != "claim")
_NO_REVIEW: Final = ReviewRecord()


class PostgresHistory:
    """Batches in two tables."""

    def __init__(self, server: Server) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._sql = load("history", server.schema)

    async def next_batch(self, request: BatchRequest) -> ArchiveBatch | None:
        check_serves_all(request)
        async with self._server.transaction() as connection:
            await connection.execute(self._sql.close_oldest, self._server.now())
            batch = await connection.fetchrow(self._sql.oldest_batch)
            if batch is None:
                return None
            rows = await connection.fetch(self._sql.page, batch[0], request.after, request.limit + 1)
        jobs = tuple(unpack_finished(record) for (record,) in rows[: request.limit])
        return ArchiveBatch(batch[0], batch[1], jobs, is_last=len(rows) <= request.limit)

    async def batch_done(self, request: BatchDoneRequest) -> bool:
        check_serves_all(request)
        return await self._server.value(self._sql.remove_batch, request.number) is not None

    async def waiting(self, request: Request) -> int:
        return int(await self._server.value(self._sql.waiting, request.scope.tenant))

    async def restore(self, request: RestoreRequest) -> tuple[UUID, ...]:
        ids = [one.job.id for one in request.jobs]
        async with read_transaction(self._server) as connection:
            await connection.execute(self._sql.one_restorer, f"{self._server.schema} restore")
            known = {row[0] for row in await connection.fetch(self._sql.known, ids)}
            new = [one for one in request.jobs if one.job.id not in known]
            await self._insert(connection, new)
        return tuple(one.job.id for one in new)

    async def _insert(self, connection: Connection, new: Sequence[FinishedJob]) -> None:
        dead = [one for one in new if one.job.state is State.DEAD]
        ended = [_values(one.job) for one in new if one.job.state is not State.DEAD]
        await connection.executemany(self._sql.insert_history, ended)
        await connection.executemany(self._sql.insert_dead, [_letter(one.job) for one in dead])
        reviews = {one.job.id: one.review for one in dead if one.review is not None}
        decided = {id: review for id, review in reviews.items() if review != _NO_REVIEW}
        await write_reviews(connection, self._server.schema, decided)
        counts = Counter((one.job.tenant, one.job.queue, one.job.state.value) for one in new)
        rows = [(*whose, jobs) for whose, jobs in sorted(counts.items())]
        if rows:
            await connection.execute(self._sql.count, *map(list, zip(*rows, strict=True)))


async def add_to_batch(connection: Connection, schema: str, jobs: Sequence[FinishedJob]) -> None:
    """Add jobs that are being removed to the open batch."""
    if not jobs:
        return
    sql = load("history", schema)
    number = await connection.fetchval(sql.open_batch) or await connection.fetchval(sql.begin_batch)
    rows = ((one.job.id, one.job.tenant, pack_finished(one)) for one in jobs)
    await connection.execute(sql.insert_jobs, number, *map(list, zip(*rows, strict=True)))


async def forget_batches(connection: Connection, schema: str, tenant: str) -> None:
    """Remove a tenant's jobs from all batches."""
    await connection.execute(load("history", schema).forget, tenant)


def _letter(job: JobRecord) -> Iterable[Any]:
    failure = last_failure(job)
    cause = (None, "") if failure is None else (failure.error_class.value, failure.fingerprint)
    return (*cause, *_values(job))


def _values(job: JobRecord) -> tuple[Any, ...]:
    """Return the columns of a finished job, in their order in `JOB`."""
    own = str(job.id)
    stored = {
        "state": job.state.value,
        "idempotency_key": None if job.idempotency_key == own else job.idempotency_key,
        "correlation_id": None if job.correlation_id == own else job.correlation_id,
        "tags": list(job.tags) or None,
        "attempts": attempts_value(job),
    }
    return tuple(stored[name] if name in stored else getattr(job, name) for name in _COLUMNS)
