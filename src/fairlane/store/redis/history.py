"""The history facet: finished jobs on their way into an archive, and back (S105, S116)."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from fairlane.model.finished_job import FinishedJob, unpack_finished
from fairlane.store.contract.history import ArchiveBatch, BatchDoneRequest, BatchRequest, RestoreRequest
from fairlane.store.contract.request import Request, check_serves_all
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.records.job import to_attempts, to_body, to_finished_head
from fairlane.store.redis.records.letter import write_change, write_review
from fairlane.store.redis.script_loader import MAX_JOBS_PER_SCRIPT

_ID_SIZE: Final = 16


class RedisHistory:
    """Batches in a hash each."""

    def __init__(self, client: RedisClient) -> None:
        """Share the connections with the other facets."""
        self._client = client

    async def next_batch(self, request: BatchRequest) -> ArchiveBatch | None:
        check_serves_all(request)
        number, closed_at = await self._client.run("history/close_batch")
        if not number:
            return None
        key = self._client.keys("archived", str(number))
        after = b"" if request.after is None else request.after.bytes
        fields = await self._client.ask("HKEYS", key)
        left = sorted(field for field in fields if field[:_ID_SIZE] > after)
        page = left[: request.limit]
        records = await self._client.ask("HMGET", key, *page) if page else []
        # Nobody adds to a closed batch, but a tenant may have been forgotten meanwhile.
        jobs = tuple(unpack_finished(record) for record in records if record is not None)
        return ArchiveBatch(number, closed_at, jobs, is_last=len(left) <= request.limit)

    async def batch_done(self, request: BatchDoneRequest) -> bool:
        check_serves_all(request)
        return bool(await self._client.run("history/batch_done", request.number))

    async def waiting(self, request: Request) -> int:
        return sum([len(fields) for _, fields in await _fields_of(self._client, request.scope.tenant)])

    async def restore(self, request: RestoreRequest) -> tuple[UUID, ...]:
        new: list[UUID] = []
        for start in range(0, len(request.jobs), MAX_JOBS_PER_SCRIPT):
            page = request.jobs[start : start + MAX_JOBS_PER_SCRIPT]
            flat = [value for one in page for value in _arguments(one)]
            replies = await self._client.run("history/restore", *flat)
            new += [one.job.id for one, is_new in zip(page, replies, strict=True) if is_new]
        return tuple(new)


async def forget_batches(client: RedisClient, tenant: str) -> None:
    """Remove a tenant's jobs from all batches."""
    for key, fields in await _fields_of(client, tenant):
        if fields:
            await client.ask("HDEL", key, *fields)


async def _fields_of(client: RedisClient, tenant: str | None) -> list[tuple[str, list[bytes]]]:
    """Return the key of each batch, and its fields of a tenant, or all of them."""
    found: list[tuple[str, list[bytes]]] = []
    for number in await client.ask("HKEYS", client.keys("archive_batches")):
        if number != b"last":
            key = client.keys("archived", number.decode())
            fields = await client.ask("HKEYS", key)
            found.append((key, [one for one in fields if tenant in {None, one[_ID_SIZE:].decode()}]))
    return found


def _arguments(finished: FinishedJob) -> tuple[Any, ...]:
    """Return what `history/restore.lua` takes for a job."""
    job, review = finished.job, finished.review
    return (
        job.id.bytes,
        to_finished_head(job),
        to_body(job),
        to_attempts(job),
        job.result or b"",
        b"" if review is None else write_review(review),
        b"" if review is None else write_change(job, review),
    )
