"""Enqueue jobs: what the script is told of each, and what its reply means (S12-S18)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord, NewJob
from fairlane.model.lifecycle.admission import Refusal, RefusalKind
from fairlane.model.lifecycle.record_changes import new_record
from fairlane.store.contract.jobs import Created, Enqueued, EnqueueReply, EnqueueRequest, OverLimit
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.jobs.large_batch import LargeBatch, encode_options, is_one_part
from fairlane.store.redis.records.job import STATES, encode_new_jobs, read


async def enqueue(client: RedisClient, request: EnqueueRequest) -> EnqueueReply:
    """Store a batch whole, or nothing of it."""
    jobs = request.jobs
    if is_one_part(jobs):
        reply = await client.run(
            "jobs/enqueue", encode_options(request), encode_new_jobs(jobs), is_enqueue=True
        )
    else:
        reply = await LargeBatch(client, request).send()
    now, refused, repeats, over, linked = reply
    if refused:
        return EnqueueReply(refused=tuple(to_refusal(jobs[one[0]], one) for one in refused))
    earlier = {one[0]: one[1:] for one in repeats}
    links = dict(linked)
    enqueued = (
        _repeated(new, earlier[index]) if index in earlier else _created(new, now, links.get(index))
        for index, new in enumerate(jobs)
    )
    above = (OverLimit(jobs[i].tenant, jobs[i].queue, waiting, limit) for i, waiting, limit in over)
    return EnqueueReply(tuple(enqueued), (), tuple(above))


def to_refusal(new: NewJob, reply: list[Any]) -> Refusal:
    """Return a refusal as a script notes it."""
    index, kind, detail, existing, waiting, limit = reply
    return Refusal(
        index,
        RefusalKind(kind.decode()),
        new.tenant,
        new.queue,
        detail.decode(),
        UUID(bytes=existing) if existing else None,
        waiting,
        limit,
    )


def _created(new: NewJob, now: Instant, correlation: bytes | None) -> Created:
    """Return a job that was stored; one that replaces a dead job has its correlation id (S13)."""
    if correlation is None:
        return Created(new, now)
    return Created(msgspec.structs.replace(new, correlation_id=correlation.decode()), now)


def _repeated(new: NewJob, found: Sequence[Any]) -> Enqueued:
    job = _earlier(new, *found)
    return Enqueued(job, is_created=job.id == new.id)


def _earlier(new: NewJob, existing: bytes, *parts: Any) -> JobRecord:
    """Return the job that answers for a repeat, or a tombstone if only its key is left (S13)."""
    match parts:
        case (bytes() as head, bytes() as body, bytes() as attempts, result):
            return read(existing, head, body, attempts, result).job
        case (state, settled_at):
            return _tombstone(new, existing, state, settled_at)
    message = f"the reply for a repeated enqueue has {len(parts)} parts"
    raise AssertionError(message)


def _tombstone(new: NewJob, existing: bytes, state: int, settled_at: Instant) -> JobRecord:
    return msgspec.structs.replace(
        new_record(new, settled_at),
        id=UUID(bytes=existing),
        state=STATES[state],
        because=None,
        settled_at=settled_at,
    )
