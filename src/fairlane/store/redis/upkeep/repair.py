"""Compare places, lists and counters of a tenant queue with its jobs, and make them anew (S90)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from fairlane.model.instants import Instant
from fairlane.model.lifecycle.states import HOT, State
from fairlane.store.contract.repair import (
    MAX_COMPARED,
    Derived,
    Flaw,
    RepairReply,
    RepairRequest,
    repair_entries,
    repair_reply,
)
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.records.entries import encode_entries
from fairlane.store.redis.records.job import NUMBERS
from fairlane.store.redis.records.stored_jobs import PAGE, Position, StoredJobs

_WHERE: Final[Mapping[int, Derived]] = {
    0: "order",
    NUMBERS[State.DELAYED]: "delayed",
    NUMBERS[State.READY]: "ready",
    NUMBERS[State.RUNNING]: "running",
}


async def repair(client: RedisClient, request: RepairRequest) -> RepairReply:
    """Collect the ids of the unfinished jobs in pages, then compare and restore in one script."""
    if not request.scope.covers(request.tenant):
        return RepairReply(0)
    ids, newest = await _unfinished(client, request)
    if len(ids) > MAX_COMPARED:
        return RepairReply(None)
    jobs, flaws = await client.run(
        "upkeep/repair",
        request.queue,
        request.tenant,
        int(request.restores),
        MAX_COMPARED,
        b"".join(id.bytes for id in ids),
        newest,
        encode_entries("audit", repair_entries(request.operation, request)),
    )
    if jobs < 0:
        return RepairReply(None)
    return repair_reply(request, jobs, (_flaw(flaws[at : at + 4]) for at in range(0, len(flaws), 4)))


async def _unfinished(client: RedisClient, request: RepairRequest) -> tuple[list[UUID], Instant]:
    """Return the ids of the tenant queue's unfinished jobs, and when the tenant's newest job came in."""
    stored_jobs, key = StoredJobs(client), NAMES["by_tenant"] + request.tenant
    ids: list[UUID] = []
    position: Position | None = None
    while True:
        _, page = await stored_jobs.page(key, up=True, start=position, limit=PAGE, states=HOT)
        jobs = (stored.job for _, stored in page if stored is not None)
        ids += [job.id for job in jobs if job.queue == request.queue]
        position = page[-1][0] if page else position
        if len(page) < PAGE or len(ids) > MAX_COMPARED:
            return ids, 0 if position is None else position[0]


def _flaw(values: Sequence[Any]) -> Flaw:
    number, stored, right, job = values
    return Flaw(_WHERE[number], stored, right, UUID(bytes=job) if job else None)
