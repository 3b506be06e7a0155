"""Count the jobs that match filters, oldest enqueue first, a bounded number of jobs per call (S51).

A call reads a sorted set, by correlation id, by tenant or by time, one page per script: only the totals of
a page leave the server. If only delayed jobs are asked for, the sets of delayed jobs of the queues are
read.
"""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from fairlane.model.instants import LAST_INSTANT
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.filters import Tallies, matches_fields
from fairlane.store.contract.jobs import TallyPage, TallyRequest
from fairlane.store.contract.request import JobPosition, check_reading, from_cursor, to_cursor
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.jobs.count import queue_names
from fairlane.store.redis.jobs.find import job_with_own_id, set_of
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.records.job import NUMBERS, STATES
from fairlane.store.redis.records.stored_jobs import PAGE, Position, StoredJobs

_BEFORE_ALL: Final[Position] = (0, bytes(16))


async def tally(client: RedisClient, request: TallyRequest) -> TallyPage:
    """Return the totals of the next jobs, and a cursor if there are more."""
    check_reading(request.limit)
    found = Tallies()
    if _is_of_delayed(request):
        return await _count_delayed(client, request, found)
    position = None if request.cursor is None else from_cursor(request.cursor)
    looked_at = 0
    if position is None:
        own = await job_with_own_id(StoredJobs(client), request.correlation_id, None)
        if own is not None and request.scope.covers(own.tenant):
            looked_at = 1
            if matches_fields(own, request):
                found.add_job(own)
    starts = [(position.enqueued_at, position.id.bytes)] if position is not None else []
    starts += [(request.since, b"")] if request.since is not None else []
    read = _Read(client, request, found, looked_at)
    last = await read.count(set_of(request), max(starts, default=None))
    return found.page(
        read.looked_at, None if last is None else to_cursor(JobPosition(last[0], UUID(bytes=last[1])))
    )


def _is_of_delayed(request: TallyRequest) -> bool:
    """Whether the sets of delayed jobs have the answer: each queue has one, and no job is in two."""
    narrow = (request.scope.tenant, request.correlation_id, request.since, request.until)
    return request.states == {State.DELAYED} and all(one is None for one in narrow)


async def _count_delayed(client: RedisClient, request: TallyRequest, found: Tallies) -> TallyPage:
    """Count one queue after the other, each by due time: a job that stays delayed keeps its position."""
    start = _DuePosition("", 0, b"") if request.cursor is None else from_cursor(request.cursor, _DuePosition)
    names = [request.queue] if request.queue is not None else await queue_names(client)
    read = _Read(client, request, found, 0)
    for name in names:
        if name < start.queue:
            continue
        at = (start.run_at, start.id) if name == start.queue else None
        last = await read.count(NAMES["delayed"] + name, at)
        if last is not None:
            return found.page(read.looked_at, to_cursor(_DuePosition(name, *last)))
    return found.page(read.looked_at, None)


class _DuePosition(msgspec.Struct, frozen=True, array_like=True):
    """Where a count of delayed jobs stopped."""

    queue: str
    run_at: Annotated[int, msgspec.Meta(ge=0, le=LAST_INSTANT)]
    id: bytes


class _Read:
    """The read of one call through sorted sets: what it has looked at, and how much it may."""

    def __init__(self, client: RedisClient, request: TallyRequest, found: Tallies, looked_at: int) -> None:
        self._client = client
        self._limit = request.limit
        self._filters = _filters(request)
        self._stop: Any = "" if request.until is None else request.until - 1
        self._found = found
        self.looked_at = looked_at

    async def count(self, key: str, at: Position | None) -> Position | None:
        """Count page after page of a set. Return None at its end, else where the bound was met."""
        last = at
        while True:
            score, id = ("", b"") if at is None else at
            left = self._limit - self.looked_at
            limit = min(PAGE, max(1, left))
            read, *rest = await self._client.run(
                "jobs/tally", key, score, id, limit, self._stop, *self._filters
            )
            end, end_id, own, own_end, own_id, groups = rest
            if own and left <= 0:
                return last or _BEFORE_ALL
            for queue, state, reason, jobs, first_at in groups:
                self._found.add(queue.decode(), STATES[state], reason.decode(), jobs, first_at)
            self.looked_at += own
            # Other tenants may have jobs under the same correlation id: not even a position of them is told.
            last = (own_end, own_id) if own else last
            if read < limit:
                return None
            at = end, end_id


def _filters(request: TallyRequest) -> tuple[Any, ...]:
    return (
        bytes(NUMBERS[state] for state in request.states),
        request.scope.tenant or "",
        request.queue or "",
        request.task or "",
        request.tag or "",
        b"" if request.parent_id is None else request.parent_id.bytes,
        request.created_by or "",
    )
