"""Find jobs over all homes, newest enqueue first, a bounded number of rows a call (S51).

A call walks a sorted set: by correlation, by tenant or by time. Where jobs of some states are asked for, and
there are few of them now, they are sorted instead; if not, of jobs in other states only the places are read.
Knows no state by itself: `matches` decides.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final
from uuid import UUID

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import State
from fairlane.store.contract.jobs import Filtered, FindReply, FindRequest
from fairlane.store.contract.reading import matches
from fairlane.store.contract.request import READ_MOST, Place, from_cursor, to_cursor
from fairlane.store.redis.connect import Wire
from fairlane.store.redis.homes import PAGE, Homes
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.rows import NUMBERS

_FEW: Final = 1_000
"""So many jobs of a state are read and sorted at once; of more, all jobs are walked."""

_Place = tuple[int, bytes]
_Found = tuple[_Place, JobRecord | None]
"""A place in the order of enqueue, and the job there if it was read."""


async def find(wire: Wire, request: FindRequest) -> FindReply:
    """Give a page, and a cursor if there may be more."""
    homes = Homes(wire)
    top = _start(request)
    listed = await _few(wire, homes, request)
    jobs = _walk(homes, request, top) if listed is None else _sorted(listed, top)
    found: list[JobRecord] = []
    last: _Place | None = None
    read = 0
    async for place, job in jobs:
        if request.since is not None and place[0] < request.since:
            break
        if job is not None and not request.scope.covers(job.tenant):
            continue
        if last is not None and (len(found) == request.limit or read == READ_MOST):
            return FindReply(tuple(found), to_cursor(Place(last[0], UUID(bytes=last[1]))))
        read += 1
        last = place
        if job is not None and matches(job, request):
            found.append(job)
    return FindReply(tuple(found), None)


def _start(request: FindRequest) -> _Place | None:
    """Give the place below which to read."""
    place = None if request.cursor is None else from_cursor(request.cursor)
    starts = [(place.enqueued_at, place.id.bytes)] if place is not None else []
    starts += [(request.until, b"")] if request.until is not None else []
    return min(starts, default=None)


def place_of(job: JobRecord) -> _Place:
    """Give a job's place in the order of enqueue."""
    return job.enqueued_at, job.id.bytes


async def _walk(homes: Homes, request: FindRequest, top: _Place | None) -> AsyncIterator[_Found]:
    """Give jobs in order from a sorted set, and between them the one whose own id is the correlation."""
    own = await own_of(homes, request.correlation_id, top)
    # By correlation there are jobs of others too, whose places are not to be told.
    states = request.states if request.correlation_id is None else ()
    place = top
    while True:
        _, page = await homes.walk(key_of(request), up=False, start=place, most=PAGE, states=states)
        for where, kept in page:
            if own is not None and place_of(own) > where:
                yield place_of(own), own
                own = None
            if kept is not None or states:
                yield where, None if kept is None else kept.job
        if len(page) < PAGE:
            break
        place = page[-1][0]
    if own is not None:
        yield place_of(own), own


def key_of(request: Filtered) -> str:
    """Name the sorted set that has all jobs of the scope, or of a correlation id."""
    if request.correlation_id is not None:
        return NAMES["by_correlation"] + request.correlation_id
    tenant = request.scope.tenant
    return NAMES["all"] if tenant is None else NAMES["by_tenant"] + tenant


async def own_of(homes: Homes, correlation_id: str | None, top: _Place | None) -> JobRecord | None:
    """Give the job that this may be the generated correlation id of: it is in no set."""
    try:
        id = None if correlation_id is None else UUID(correlation_id)
    except ValueError:
        return None
    if id is None or str(id) != correlation_id:
        return None
    _, found = await homes.get((id,))
    if id not in found or found[id].head.correlation_id:
        return None
    job = found[id].job
    return job if top is None or place_of(job) < top else None


async def _few(wire: Wire, homes: Homes, request: FindRequest) -> list[JobRecord] | None:
    """Give all jobs in the states asked for, if they are listed and few."""
    if request.correlation_id is not None or not request.states:
        return None
    keys: list[str] = []
    for state in request.states:
        if state is State.RUNNING:
            keys.append(wire.keys("leases"))
        elif state is State.DEAD:
            keys.append(wire.keys("finished", str(NUMBERS[state])))
        elif state is State.DELAYED:
            queues = await wire.ask("HKEYS", wire.keys("queues"))
            keys += [wire.keys("delayed", queue.decode()) for queue in queues]
        else:
            return None
    if sum([await wire.ask("ZCARD", key) for key in keys]) > _FEW:
        return None
    ids = [UUID(bytes=id) for key in keys for id in await wire.ask("ZRANGE", key, 0, -1)]
    _, found = await homes.get(ids)
    return sorted((kept.job for kept in found.values()), key=place_of, reverse=True)


async def _sorted(jobs: list[JobRecord], top: _Place | None) -> AsyncIterator[_Found]:
    for job in jobs:
        if top is None or place_of(job) < top:
            yield place_of(job), job
