"""Count the jobs that meet filters, oldest enqueue first, a bounded number of jobs a call (S51).

A call walks a sorted set, by correlation, by tenant or by time, a page a script: what a page adds up to is all
that leaves the server. Where jobs of some states are asked for, and there are few of them now, these are read.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from fairlane.store.contract.jobs import TallyPage, TallyRequest
from fairlane.store.contract.reading import Tallies, meets
from fairlane.store.contract.request import READ_MOST, Place, from_cursor, to_cursor
from fairlane.store.redis.connect import Wire
from fairlane.store.redis.finding import few, key_of, own_of, place_of
from fairlane.store.redis.homes import PAGE, Homes
from fairlane.store.redis.rows import NUMBERS, STATES

_Place = tuple[int, bytes]


async def tally(wire: Wire, request: TallyRequest) -> TallyPage:
    """Give what the next jobs add up to, and a cursor if there are more."""
    place = None if request.cursor is None else from_cursor(request.cursor)
    starts = [(place.enqueued_at, place.id.bytes)] if place is not None else []
    starts += [(request.since, b"")] if request.since is not None else []
    start = max(starts, default=None)
    found = Tallies()
    homes = Homes(wire)
    short = await few(wire, homes, request)
    if short is not None:
        seen = [job for job in short if request.scope.covers(job.tenant)]
        seen = [job for job in seen if start is None or place_of(job) > start]
        for job in seen:
            if meets(job, request):
                found.add_job(job)
        return found.page(len(seen), None)
    looked_at = 0
    if place is None:
        own = await own_of(homes, request.correlation_id, None)
        if own is not None and request.scope.covers(own.tenant):
            looked_at = 1
            if meets(own, request):
                found.add_job(own)
    return await _walk(wire, request, start, found, looked_at)


async def _walk(
    wire: Wire, request: TallyRequest, at: _Place | None, found: Tallies, looked_at: int
) -> TallyPage:
    """Add up page after page, until the bound of a call or the end."""
    filters = _filters(request)
    stop: Any = "" if request.until is None else request.until - 1
    last: _Place | None = None
    while True:
        if looked_at >= READ_MOST and last is not None:
            return found.page(looked_at, to_cursor(Place(last[0], UUID(bytes=last[1]))))
        score, id = ("", b"") if at is None else at
        most = min(PAGE, max(1, READ_MOST - looked_at))
        read, *rest = await wire.run("tally", key_of(request), score, id, most, stop, *filters)
        end, end_id, own, own_end, own_id, groups = rest
        for queue, state, word, jobs, first_at in groups:
            found.add(queue.decode(), STATES[state], word.decode(), jobs, first_at)
        looked_at += own
        # Of others, whose jobs may have the same correlation id, not even a place is told.
        last = (own_end, own_id) if own else last
        if read < most:
            return found.page(looked_at, None)
        at = end, end_id


def _filters(request: TallyRequest) -> tuple[Any, ...]:
    return (
        bytes(NUMBERS[state] for state in request.states),
        request.scope.tenant or "",
        request.queue or "",
        request.task or "",
        request.tag or "",
        b"" if request.parent_id is None else request.parent_id.bytes,
    )
