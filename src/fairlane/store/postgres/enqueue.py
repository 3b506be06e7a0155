"""Let new jobs in: by one call where nothing can refuse them, else by `Admitting` in a transaction."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from fairlane.model.errors import EnqueueUnknown, StoreBusy, StoreError, TenantMismatch
from fairlane.model.instants import Instant
from fairlane.model.job import NewJob
from fairlane.store.contract.jobs import Created, EnqueueReply, EnqueueRequest
from fairlane.store.postgres.admitting import (
    Admitting,
    IdRaceError,
    Link,
    RefusedError,
    must_be_known,
)
from fairlane.store.postgres.connect import Server
from fairlane.store.postgres.errors import CommitUnknown
from fairlane.store.postgres.rows import sent_values
from fairlane.store.postgres.statements import load

_RACES: Final = 5
_LOOK_EVERY: Final = 2_500
"""How many deltas are appended, about, until an enqueue looks whether they pile up: half of what it folds."""


async def enqueue(server: Server, request: EnqueueRequest) -> EnqueueReply:
    """Store a batch whole, or nothing of it."""
    refuse_foreign(request)
    if not request.jobs:
        return EnqueueReply()
    try:
        reply = await fast(server, server.schema, server.now(), request) or await _carefully(server, request)
    except CommitUnknown as error:
        raise EnqueueUnknown(str(error)) from error
    created = created_of(request, reply)
    server.hint({new.queue for new in created})
    await _relieve(server, created)
    return reply


def created_of(request: EnqueueRequest, reply: EnqueueReply) -> list[NewJob]:
    """Give the jobs of a request that came in; their records are not made for that."""
    return [new for new, one in zip(request.jobs, reply.enqueued, strict=False) if one.is_created]


def refuse_foreign(request: EnqueueRequest) -> None:
    """Raise `TenantMismatch` if a job is of a tenant outside the scope."""
    for job in request.jobs:
        if not request.scope.covers(job.tenant):
            raise TenantMismatch(job.tenant, str(request.scope.tenant))


async def fast(link: Link, schema: str, now: Instant | None, request: EnqueueRequest) -> EnqueueReply | None:
    """Store a batch by one call; None, and nothing is stored, if anything may have a say in it."""
    jobs = request.jobs
    if request.is_repeated:
        return None
    keys = sum(new.idempotency_key is not None for new in jobs)
    dedups = sum(new.dedup_key is not None for new in jobs)
    fingerprints = [new.fingerprint for new in jobs] if keys else None
    counts = (must_be_known(request), keys, dedups, fingerprints)
    rows = await link.fetch(load("enqueue", schema).enqueue, now, *counts, *sent_values(jobs))
    at = rows[0][0]
    if at is None:
        return None
    return EnqueueReply(tuple(Created(new, at) for new in jobs))


async def _carefully(server: Server, request: EnqueueRequest) -> EnqueueReply:
    for _ in range(_RACES):
        try:
            async with server.transaction() as link:
                return await Admitting(link, server.schema, server.now(), request).run()
        except RefusedError as refused:
            return refused.reply
        except IdRaceError:
            continue
    message = "others keep enqueueing the same ids"
    raise StoreBusy(message)


async def _relieve(server: Server, created: Sequence[NewJob]) -> None:
    """Fold once in a while, where many deltas wait: without workers nobody else would. Waits for nobody.

    The jobs are stored: whatever becomes of this must not be told as if they were not.
    """
    strands = {(new.queue, new.tenant, new.task) for new in created}
    for queue in sorted({queue for queue, _, _ in strands}):
        appended = sum(strand[0] == queue for strand in strands)
        if random.random() < appended / _LOOK_EVERY:  # noqa: S311 (no secret)
            with suppress(StoreError):
                await server.value(load("enqueue", server.schema).relieve, server.now(), queue)
