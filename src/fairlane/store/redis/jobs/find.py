"""Find jobs in any state, newest enqueue first, a bounded number of rows per call (S51).

A call reads a sorted set page by page: by correlation id, by tenant or by time. If states are asked for
that few jobs have now, those jobs are read and sorted instead; if there are many, only the positions of
jobs in other states are read. `matches` of the contract decides.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final
from uuid import UUID

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.filters import matches
from fairlane.store.contract.jobs import Filtered, FindReply, FindRequest
from fairlane.store.contract.request import MAX_ROWS_READ, JobPosition, from_cursor, to_cursor
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.records.job import NUMBERS
from fairlane.store.redis.records.stored_jobs import PAGE, Position, StoredJobs

_FEW: Final = 1_000
"""Up to this many jobs of a state are read and sorted; if there are more, all jobs are read in order."""

_Found = tuple[Position, JobRecord | None]
"""A position in the order of enqueue, and the job there if it was read."""


async def find(client: RedisClient, request: FindRequest) -> FindReply:
    """Return a page, and a cursor if there may be more."""
    stored_jobs = StoredJobs(client)
    top = _start(request)
    listed = await _few_in_states(client, stored_jobs, request)
    jobs = _read_in_order(stored_jobs, request, top) if listed is None else _below(listed, top)
    found: list[JobRecord] = []
    last: Position | None = None
    read = 0
    async for position, job in jobs:
        if request.since is not None and position[0] < request.since:
            break
        if job is not None and not request.scope.covers(job.tenant):
            continue
        if last is not None and (len(found) == request.limit or read == MAX_ROWS_READ):
            return FindReply(tuple(found), to_cursor(JobPosition(last[0], UUID(bytes=last[1]))))
        read += 1
        last = position
        if job is not None and matches(job, request):
            found.append(job)
    return FindReply(tuple(found), None)


def _start(request: FindRequest) -> Position | None:
    """Return the position below which to read."""
    position = None if request.cursor is None else from_cursor(request.cursor)
    starts = [(position.enqueued_at, position.id.bytes)] if position is not None else []
    starts += [(request.until, b"")] if request.until is not None else []
    return min(starts, default=None)


def position_of(job: JobRecord) -> Position:
    """Return the position of a job in the order of enqueue."""
    return job.enqueued_at, job.id.bytes


async def _read_in_order(
    stored_jobs: StoredJobs, request: FindRequest, top: Position | None
) -> AsyncIterator[_Found]:
    """Yield jobs in order from a sorted set, and between them the one whose own id it is."""
    own = await job_with_own_id(stored_jobs, request.correlation_id, top)
    # Other tenants may have jobs under the same correlation id: their positions must not be told.
    states = request.states if request.correlation_id is None else ()
    position = top
    while True:
        _, page = await stored_jobs.page(set_of(request), up=False, start=position, limit=PAGE, states=states)
        for where, stored in page:
            if own is not None and position_of(own) > where:
                yield position_of(own), own
                own = None
            if stored is not None or states:
                yield where, None if stored is None else stored.job
        if len(page) < PAGE:
            break
        position = page[-1][0]
    if own is not None:
        yield position_of(own), own


def set_of(request: Filtered) -> str:
    """Return the sorted set that has all jobs of the scope, or of a correlation id."""
    if request.correlation_id is not None:
        return NAMES["by_correlation"] + request.correlation_id
    tenant = request.scope.tenant
    return NAMES["all"] if tenant is None else NAMES["by_tenant"] + tenant


async def job_with_own_id(
    stored_jobs: StoredJobs, correlation_id: str | None, top: Position | None
) -> JobRecord | None:
    """Return the job whose own id this correlation id is: it is in no set of correlation ids."""
    try:
        id = None if correlation_id is None else UUID(correlation_id)
    except ValueError:
        return None
    if id is None or str(id) != correlation_id:
        return None
    _, found = await stored_jobs.get((id,))
    if id not in found or found[id].head.correlation_id:
        return None
    job = found[id].job
    return job if top is None or position_of(job) < top else None


async def _few_in_states(
    client: RedisClient, stored_jobs: StoredJobs, request: FindRequest
) -> list[JobRecord] | None:
    """Return all jobs in the states asked for, if there are sets of them and they are few."""
    if request.correlation_id is not None or not request.states:
        return None
    keys: list[str] = []
    for state in request.states:
        if state is State.RUNNING:
            keys.append(client.keys("leases"))
        elif state is State.DEAD:
            keys.append(client.keys("finished", str(NUMBERS[state])))
        elif state is State.DELAYED:
            queues = await client.ask("HKEYS", client.keys("queues"))
            keys += [client.keys("delayed", queue.decode()) for queue in queues]
        else:
            return None
    if sum([await client.ask("ZCARD", key) for key in keys]) > _FEW:
        return None
    ids = [UUID(bytes=id) for key in keys for id in await client.ask("ZRANGE", key, 0, -1)]
    _, found = await stored_jobs.get(ids)
    return sorted((stored.job for stored in found.values()), key=position_of, reverse=True)


async def _below(jobs: list[JobRecord], top: Position | None) -> AsyncIterator[_Found]:
    for job in jobs:
        if top is None or position_of(job) < top:
            yield position_of(job), job
