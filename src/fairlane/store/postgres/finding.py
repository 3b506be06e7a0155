"""Find jobs over all homes, newest enqueue first, a bounded number of rows a call (S51).

A call walks indexes in order, by correlation, by tenant or by time, stretch by stretch: the first is short,
for most pages are full at once. Where jobs of some current states are asked for, and there are few of them,
they are sorted instead. Each stretch is one statement; a place never changes, so stretches fit together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import Home, State, home
from fairlane.store.contract.jobs import Filtered, FindReply, FindRequest, GetRequest
from fairlane.store.contract.reading import matches
from fairlane.store.contract.request import READ_MOST, Place, from_cursor, to_cursor
from fairlane.store.postgres.connect import Connection, Server
from fairlane.store.postgres.reading import reading
from fairlane.store.postgres.rows import whole_record
from fairlane.store.postgres.statements import load

FIRST_STRETCH: Final = 200
LONGEST_STRETCH: Final = 2_500
"""How many rows one statement looks at: wide rows of this many fit into memory."""


class _At(NamedTuple):
    """A place in the order of all jobs."""

    enqueued_at: Instant
    id: UUID


_LOWEST: Final = UUID(int=0)
_TOP: Final = _At(2**63 - 1, UUID(int=2**128 - 1))


async def get(server: Server, request: GetRequest) -> Mapping[UUID, JobRecord]:
    """Give jobs by id from one look at all homes."""
    rows = await server.fetch(load("find", server.schema).by_id, list(request.ids))
    jobs = map(whole_record, rows)
    return {job.id: job for job in jobs if request.scope.covers(job.tenant)}


async def find(server: Server, request: FindRequest) -> FindReply:
    """Give a page, and a cursor if there may be more."""
    top = _start(request)
    bottom = _At(max(request.since or 0, 0), _LOWEST)
    async with reading(server, in_order=True) as connection:
        walk = _Walk(connection, load("find", server.schema), request)
        await walk.choose()
        found, last = await walk.read(top, bottom)
        found += await walk.own(top, last or bottom)
    found.sort(key=_place, reverse=True)
    if len(found) > request.limit:
        found = found[: request.limit]
        last = _place(found[-1])
    return FindReply(tuple(found), None if last is None else to_cursor(Place(*last)))


def _start(request: FindRequest) -> _At:
    """Give the place below which to read."""
    place = None if request.cursor is None else from_cursor(request.cursor)
    start = _TOP if place is None else _At(place.enqueued_at, place.id)
    return start if request.until is None else min(start, _At(max(request.until, 0), _LOWEST))


def _place(job: JobRecord) -> _At:
    return _At(job.enqueued_at, job.id)


class _Walk:
    """One call's way through the homes that it concerns."""

    def __init__(self, connection: Connection, sql: Any, request: FindRequest) -> None:
        self._connection = connection
        self._sql = sql
        self._request = request
        self._homes: list[str] = []
        self._text = sql.stretch

    async def choose(self) -> None:
        """Choose where to read: the homes of the states that are asked for, or lists of these if short."""
        sql, states = self._sql, self._request.states or frozenset(State)
        homes = {home(state) for state in states}
        hot = sorted(state for state in states if home(state) is Home.HOT)
        if homes == {Home.HOT} and await are_few(self._connection, sql, hot):
            self._homes = [sql.listed.replace("{state}", literal(state)) for state in hot]
            return
        texts = {Home.HOT: (sql.waiting, sql.running), Home.HISTORY: (sql.history,), Home.DEAD: (sql.dead,)}
        self._homes = [text for where, read in texts.items() if where in homes for text in read]
        if self._request.correlation_id is not None:
            self._text = sql.stretch_of_correlation
        elif self._request.scope.tenant is not None:
            self._text = sql.stretch_of_tenant

    async def read(self, top: _At, bottom: _At) -> tuple[list[JobRecord], _At | None]:
        """Give jobs below a place, one more than asked for if there are more, and where reading stopped."""
        found: list[JobRecord] = []
        left = READ_MOST
        size = max(FIRST_STRETCH, self._request.limit + 1)
        while left:
            size = min(size, left)
            jobs, last = await self._stretch(top, bottom, size)
            found += filter(self._is_wanted, jobs)
            if last is None or len(found) > self._request.limit:
                return found, None
            top, left = last, left - size
            size = LONGEST_STRETCH
        return found, top

    async def _stretch(self, top: _At, bottom: _At, size: int) -> tuple[list[JobRecord], _At | None]:
        """Give candidates among the next rows, and the last of these rows if there are more after it."""
        stretches = [self._text.replace("{home}", home) for home in self._homes]
        statement = self._sql.chosen.replace("{stretches}", " UNION ALL ".join(stretches))
        rows = await self._connection.fetch(statement, *top, *bottom, size + 1, *filters_of(self._request))
        is_more = bool(rows) and rows[-1][0] > size
        jobs = [whole_record(row[1:]) for row in rows if row[0] <= size]
        return jobs, _place(jobs[-1]) if is_more else None

    async def own(self, top: _At, bottom: _At) -> list[JobRecord]:
        """Give the job whose generated correlation id is asked for: it is in no index."""
        id = as_id(self._request.correlation_id)
        if id is None:
            return []
        jobs = map(whole_record, await self._connection.fetch(self._sql.by_id, [id]))
        return [job for job in jobs if self._is_wanted(job) and bottom <= _place(job) < top]

    def _is_wanted(self, job: JobRecord) -> bool:
        return self._request.scope.covers(job.tenant) and matches(job, self._request)


def filters_of(request: Filtered) -> tuple[Any, ...]:
    """Give the values that a walk compares rows with, in the order of its parameters."""
    states = sorted(state.value for state in request.states)
    return (
        request.scope.tenant,
        request.correlation_id,
        states or None,
        request.queue,
        request.task,
        request.parent_id,
        request.tag,
    )


async def are_few(connection: Connection, sql: Any, states: Iterable[State]) -> bool:
    """Whether the current jobs in these states can be sorted in one call."""
    lists = " UNION ALL ".join(sql.list.replace("{state}", literal(state)) for state in sorted(states))
    length = sql.length.replace("{lists}", lists)
    return bool(await connection.fetchval(length, READ_MOST + 1) <= READ_MOST)


def literal(state: State) -> str:
    """Write a state as SQL does."""
    return f"'{state.value}'"


def as_id(correlation_id: str | None) -> UUID | None:
    """Give the id of the job that this may be the generated correlation id of."""
    try:
        return None if correlation_id is None else UUID(correlation_id)
    except ValueError:
        return None
