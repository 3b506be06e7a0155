"""Count the jobs that meet filters, oldest enqueue first, a bounded number of jobs a call (S51).

A call walks a sorted set, by correlation, by tenant or by time, a page a script: what a page adds up to is
all that leaves the server. Delayed jobs alone are walked by the lists that each queue has of them.
"""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from fairlane.model.instants import LAST_INSTANT
from fairlane.model.lifecycle import State
from fairlane.store.contract.jobs import TallyPage, TallyRequest
from fairlane.store.contract.reading import Tallies, meets
from fairlane.store.contract.request import Place, check_reading, from_cursor, to_cursor
from fairlane.store.redis.connect import Wire
from fairlane.store.redis.counting import queue_names
from fairlane.store.redis.finding import key_of, own_of
from fairlane.store.redis.homes import PAGE, Homes
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.rows import NUMBERS, STATES

_Place = tuple[int, bytes]
_BEFORE_ALL: Final[_Place] = (0, bytes(16))


async def tally(wire: Wire, request: TallyRequest) -> TallyPage:
    """Give what the next jobs add up to, and a cursor if there are more."""
    check_reading(request.most)
    found = Tallies()
    if _is_of_delayed(request):
        return await _walk_delayed(wire, request, found)
    place = None if request.cursor is None else from_cursor(request.cursor)
    looked_at = 0
    if place is None:
        own = await own_of(Homes(wire), request.correlation_id, None)
        if own is not None and request.scope.covers(own.tenant):
            looked_at = 1
            if meets(own, request):
                found.add_job(own)
    starts = [(place.enqueued_at, place.id.bytes)] if place is not None else []
    starts += [(request.since, b"")] if request.since is not None else []
    walk = _Walk(wire, request, found, looked_at)
    last = await walk.go_on(key_of(request), max(starts, default=None))
    return found.page(
        walk.looked_at, None if last is None else to_cursor(Place(last[0], UUID(bytes=last[1])))
    )


def _is_of_delayed(request: TallyRequest) -> bool:
    """Whether the lists of what is delayed answer: each queue has one, and no job is in two."""
    narrow = (request.scope.tenant, request.correlation_id, request.since, request.until)
    return request.states == {State.DELAYED} and all(one is None for one in narrow)


async def _walk_delayed(wire: Wire, request: TallyRequest, found: Tallies) -> TallyPage:
    """Add up one queue after the other, each by due time: a job that stays delayed keeps its place."""
    start = _Due("", 0, b"") if request.cursor is None else from_cursor(request.cursor, _Due)
    names = [request.queue] if request.queue is not None else await queue_names(wire)
    walk = _Walk(wire, request, found, 0)
    for name in names:
        if name < start.queue:
            continue
        at = (start.run_at, start.id) if name == start.queue else None
        last = await walk.go_on(NAMES["delayed"] + name, at)
        if last is not None:
            return found.page(walk.looked_at, to_cursor(_Due(name, *last)))
    return found.page(walk.looked_at, None)


class _Due(msgspec.Struct, frozen=True, array_like=True):
    """Where a counting of delayed jobs stopped."""

    queue: str
    run_at: Annotated[int, msgspec.Meta(ge=0, le=LAST_INSTANT)]
    id: bytes


class _Walk:
    """One call's way through sorted sets: what it has looked at, and may."""

    def __init__(self, wire: Wire, request: TallyRequest, found: Tallies, looked_at: int) -> None:
        self._wire = wire
        self._most = request.most
        self._filters = _filters(request)
        self._stop: Any = "" if request.until is None else request.until - 1
        self._found = found
        self.looked_at = looked_at

    async def go_on(self, key: str, at: _Place | None) -> _Place | None:
        """Add up page after page of a set; None at its end, else where the bound of the call was met."""
        last = at
        while True:
            score, id = ("", b"") if at is None else at
            left = self._most - self.looked_at
            most = min(PAGE, max(1, left))
            read, *rest = await self._wire.run("tally", key, score, id, most, self._stop, *self._filters)
            end, end_id, own, own_end, own_id, groups = rest
            if own and left <= 0:
                return last or _BEFORE_ALL
            for queue, state, word, jobs, first_at in groups:
                self._found.add(queue.decode(), STATES[state], word.decode(), jobs, first_at)
            self.looked_at += own
            # Of others, whose jobs may have the same correlation id, not even a place is told.
            last = (own_end, own_id) if own else last
            if read < most:
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
    )
