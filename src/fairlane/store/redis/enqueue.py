"""Let new jobs in: what the script is told of each, and what its answer means (S12-S18)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec

from fairlane.model.admission import Refusal, RefusalKind
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord, NewJob
from fairlane.model.moves import born
from fairlane.store.contract.jobs import Enqueued, EnqueueReply, EnqueueRequest, OverLimit
from fairlane.store.redis.connect import Wire
from fairlane.store.redis.rows import STATES, new_body, pack, read


async def enqueue(wire: Wire, request: EnqueueRequest) -> EnqueueReply:
    """Store a batch whole, or nothing of it."""
    jobs = request.jobs
    options = {"must_be_declared": request.must_be_declared, "is_repeated": request.is_repeated}
    now, refused, repeats, over = await wire.run(
        "enqueue",
        pack(options),
        b"".join(new.id.bytes for new in jobs),
        pack([_item(new) for new in jobs]),
        *map(new_body, jobs),
        enqueues=True,
    )
    if refused:
        return EnqueueReply(refused=tuple(_refusal(jobs[one[0]], one) for one in refused))
    earlier = {one[0]: one[1:] for one in repeats}
    made = {new.id: born(new, now) for index, new in enumerate(jobs) if index not in earlier}
    enqueued = (
        Enqueued(made[new.id], is_created=True)
        if index not in earlier
        else Enqueued(_earlier(new, made, *earlier[index]), is_created=False)
        for index, new in enumerate(jobs)
    )
    above = (OverLimit(jobs[i].tenant, jobs[i].queue, waiting, limit) for i, waiting, limit in over)
    return EnqueueReply(tuple(enqueued), (), tuple(above))


def _item(new: NewJob) -> tuple[Any, ...]:
    return (
        new.tenant,
        new.queue,
        new.task,
        new.priority,
        -1 if new.run_at is None else max(0, new.run_at),
        new.delay,
        0 if new.expires_at is None else new.expires_at,
        -1 if new.expires_in is None else new.expires_in,
        new.idempotency_key or "",
        new.fingerprint.hex(),
        new.on_duplicate == "raise",
        new.dedup_key or "",
        new.dedup_until == "started",
        "" if new.correlation_id in {None, str(new.id)} else new.correlation_id,
        -1 if new.timeout is None else new.timeout,
    )


def _refusal(new: NewJob, answer: list[Any]) -> Refusal:
    index, kind, detail, existing, waiting, limit = answer
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


def _earlier(new: NewJob, made: dict[UUID, JobRecord], existing: bytes, *kept: Any) -> JobRecord:
    """Give the job that answers for a repeat, or its husk if only the key is left (S13)."""
    match kept:
        case ():
            return made[UUID(bytes=existing)]
        case (bytes() as head, bytes() as body, bytes() as attempts, result):
            return read(existing, head, body, attempts, result).job
        case (state, settled_at):
            return _husk(new, existing, state, settled_at)
    message = f"the answer for a repeated enqueue has {len(kept)} parts"
    raise AssertionError(message)


def _husk(new: NewJob, existing: bytes, state: int, settled_at: Instant) -> JobRecord:
    return msgspec.structs.replace(
        born(new, settled_at),
        id=UUID(bytes=existing),
        state=STATES[state],
        because=None,
        settled_at=settled_at,
    )
