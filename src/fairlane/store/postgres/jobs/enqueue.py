"""Enqueue: by one call where nothing can refuse the batch, else by `BatchAdmission` in a transaction."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from fairlane.model.errors import EnqueueUnknown, StoreBusy, StoreError
from fairlane.model.instants import Instant
from fairlane.model.job import NewJob
from fairlane.store.contract.jobs import Created, EnqueueReply, EnqueueRequest, check_tenants
from fairlane.store.postgres.connection import Server, StatementRunner
from fairlane.store.postgres.errors import CommitUnknown
from fairlane.store.postgres.jobs.admission import (
    BatchAdmission,
    BatchRefusedError,
    IdRaceError,
    tenants_to_check,
)
from fairlane.store.postgres.rows import sent_values
from fairlane.store.postgres.statements import load

_MAX_RACES: Final = 5
_CHECK_BACKLOG_EVERY: Final = 2_500
"""An enqueue checks for a backlog of deltas once in about this many: half of what it applies."""


async def enqueue(server: Server, request: EnqueueRequest) -> EnqueueReply:
    """Store a batch whole, or nothing of it."""
    check_tenants(request)
    if not request.jobs:
        return EnqueueReply()
    try:
        reply = await enqueue_unrestricted(server, server.schema, server.now(), request)
        if reply is None:
            reply = await _enqueue_restricted(server, request)
    except CommitUnknown as error:
        raise EnqueueUnknown(str(error)) from error
    created = created_jobs(request, reply)
    server.hint({new.queue for new in created})
    await _apply_backlog(server, created)
    return reply


def created_jobs(request: EnqueueRequest, reply: EnqueueReply) -> list[NewJob]:
    """Return the jobs of a request that came in, without making their records."""
    return [new for new, one in zip(request.jobs, reply.enqueued, strict=False) if one.is_created]


async def enqueue_unrestricted(
    runner: StatementRunner, schema: str, now: Instant | None, request: EnqueueRequest
) -> EnqueueReply | None:
    """Store a batch by one call; None, and nothing stored, if anything could refuse an item or warn.

    Nor does it append anything: with an operation, `BatchAdmission` does all.
    """
    jobs = request.jobs
    if request.is_repeated or request.operation is not None:
        return None
    keys = sum(new.idempotency_key is not None for new in jobs)
    dedups = sum(new.dedup_key is not None for new in jobs)
    fingerprints = [new.fingerprint for new in jobs] if keys else None
    counts = (tenants_to_check(request), keys, dedups, fingerprints)
    rows = await runner.fetch(load("enqueue", schema).enqueue, now, *counts, *sent_values(jobs))
    at = rows[0][0]
    if at is None:
        return None
    return EnqueueReply(tuple(Created(new, at) for new in jobs))


async def _enqueue_restricted(server: Server, request: EnqueueRequest) -> EnqueueReply:
    for _ in range(_MAX_RACES):
        try:
            async with server.transaction() as connection:
                return await BatchAdmission(connection, server.schema, server.now(), request).run()
        except BatchRefusedError as refused:
            return refused.reply
        except IdRaceError:
            continue
    message = "others keep enqueueing the same ids"
    raise StoreBusy(message)


async def _apply_backlog(server: Server, created: Sequence[NewJob]) -> None:
    """Apply deltas once in a while, where many wait: without workers nobody else would. Waits for nobody.

    The jobs are stored: a failure here must not be reported as if they were not.
    """
    strands = {(new.queue, new.tenant, new.task) for new in created}
    for queue in sorted({queue for queue, _, _ in strands}):
        appended = sum(strand[0] == queue for strand in strands)
        if random.random() < appended / _CHECK_BACKLOG_EVERY:  # noqa: S311 (no secret)
            with suppress(StoreError):
                await server.value(load("enqueue", server.schema).apply_backlog, server.now(), queue)
