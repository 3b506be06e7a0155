"""Get and find jobs over all homes, newest enqueue first, a bounded number of rows a call (S51).

A call scans indexes in order, by correlation, tenant or time, in chunks. The first chunk is small, because
most pages are full at once. If jobs in current states are asked for and there are few of them, they are
sorted instead. Each chunk is one statement; a job's position never changes, so chunks fit together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import Home, State, home
from fairlane.store.contract.filters import matches
from fairlane.store.contract.jobs import Filtered, FindReply, FindRequest, GetRequest
from fairlane.store.contract.request import MAX_ROWS_READ, JobPosition, from_cursor, to_cursor
from fairlane.store.postgres.connection import Connection, Server
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.rows import read_record
from fairlane.store.postgres.statements import load

FIRST_CHUNK: Final = 200
MAX_CHUNK: Final = 2_500
"""How many rows one statement reads: this many wide rows fit into memory."""


class _Position(NamedTuple):
    """A position in the order of all jobs."""

    enqueued_at: Instant
    id: UUID


_LOWEST: Final = UUID(int=0)
_TOP: Final = _Position(2**63 - 1, UUID(int=2**128 - 1))


async def get(server: Server, request: GetRequest) -> Mapping[UUID, JobRecord]:
    """Return jobs by id, from one look at all homes."""
    rows = await server.fetch(load("find", server.schema).by_id, list(request.ids))
    jobs = map(read_record, rows)
    return {job.id: job for job in jobs if request.scope.covers(job.tenant)}


async def find(server: Server, request: FindRequest) -> FindReply:
    """Return a page, and a cursor if there may be more."""
    top = _start(request)
    bottom = _Position(max(request.since or 0, 0), _LOWEST)
    async with read_transaction(server, in_order=True) as connection:
        scan = _IndexScan(connection, load("find", server.schema), request)
        await scan.choose()
        found, last = await scan.read(top, bottom)
        found += await scan.own(top, last or bottom)
    found.sort(key=_position, reverse=True)
    if len(found) > request.limit:
        found = found[: request.limit]
        last = _position(found[-1])
    return FindReply(tuple(found), None if last is None else to_cursor(JobPosition(*last)))


def _start(request: FindRequest) -> _Position:
    """Return the position below which to read."""
    place = None if request.cursor is None else from_cursor(request.cursor)
    start = _TOP if place is None else _Position(place.enqueued_at, place.id)
    return start if request.until is None else min(start, _Position(max(request.until, 0), _LOWEST))


def _position(job: JobRecord) -> _Position:
    return _Position(job.enqueued_at, job.id)


class _IndexScan:
    """One call's scan of the homes that it concerns."""

    def __init__(self, connection: Connection, sql: Any, request: FindRequest) -> None:
        self._connection = connection
        self._sql = sql
        self._request = request
        self._homes: list[str] = []
        self._text = sql.chunk

    async def choose(self) -> None:
        """Choose where to read: the homes of the states asked for, or lists of these jobs if short."""
        sql, states = self._sql, self._request.states or frozenset(State)
        homes = {home(state) for state in states}
        hot = sorted(state for state in states if home(state) is Home.HOT)
        if homes == {Home.HOT} and await are_few(self._connection, sql, hot):
            self._homes = [sql.listed.replace("{state}", literal(state)) for state in hot]
            return
        texts = {Home.HOT: (sql.waiting, sql.running), Home.HISTORY: (sql.history,), Home.DEAD: (sql.dead,)}
        self._homes = [text for where, read in texts.items() if where in homes for text in read]
        if self._request.correlation_id is not None:
            self._text = sql.chunk_of_correlation
        elif self._request.scope.tenant is not None:
            self._text = sql.chunk_of_tenant

    async def read(self, top: _Position, bottom: _Position) -> tuple[list[JobRecord], _Position | None]:
        """Return jobs below a position, one more than asked for if there are more, and where it stopped."""
        found: list[JobRecord] = []
        left = MAX_ROWS_READ
        size = max(FIRST_CHUNK, self._request.limit + 1)
        while left:
            size = min(size, left)
            jobs, last = await self._chunk(top, bottom, size)
            found += filter(self._is_wanted, jobs)
            if last is None or len(found) > self._request.limit:
                return found, None
            top, left = last, left - size
            size = MAX_CHUNK
        return found, top

    async def _chunk(
        self, top: _Position, bottom: _Position, size: int
    ) -> tuple[list[JobRecord], _Position | None]:
        """Return candidates among the next rows, and the last of these rows if there are more after it."""
        chunks = [self._text.replace("{home}", home) for home in self._homes]
        statement = self._sql.chosen.replace("{chunks}", " UNION ALL ".join(chunks))
        rows = await self._connection.fetch(statement, *top, *bottom, size + 1, *filters_of(self._request))
        is_more = bool(rows) and rows[-1]["number"] > size
        jobs = [read_record(row) for row in rows if row["number"] <= size]
        return jobs, _position(jobs[-1]) if is_more else None

    async def own(self, top: _Position, bottom: _Position) -> list[JobRecord]:
        """Return the job whose generated correlation id is asked for: it is in no index."""
        id = as_id(self._request.correlation_id)
        if id is None:
            return []
        jobs = map(read_record, await self._connection.fetch(self._sql.by_id, [id]))
        return [job for job in jobs if self._is_wanted(job) and bottom <= _position(job) < top]

    def _is_wanted(self, job: JobRecord) -> bool:
        return self._request.scope.covers(job.tenant) and matches(job, self._request)


def filters_of(request: Filtered) -> tuple[Any, ...]:
    """Return the values that a scan compares rows with, in the order of its parameters."""
    states = sorted(state.value for state in request.states)
    return (
        request.scope.tenant,
        request.correlation_id,
        states or None,
        request.queue,
        request.task,
        request.parent_id,
        request.tag,
        request.created_by,
    )


async def are_few(connection: Connection, sql: Any, states: Iterable[State]) -> bool:
    """Whether the current jobs in these states can be sorted in one call."""
    lists = " UNION ALL ".join(sql.list.replace("{state}", literal(state)) for state in sorted(states))
    length = sql.length.replace("{lists}", lists)
    return bool(await connection.fetchval(length, MAX_ROWS_READ + 1) <= MAX_ROWS_READ)


def literal(state: State) -> str:
    """Return a state as a literal of SQL."""
    return f"'{state.value}'"


def as_id(correlation_id: str | None) -> UUID | None:
    """Return the id of the job whose generated correlation id this may be."""
    try:
        return None if correlation_id is None else UUID(correlation_id)
    except ValueError:
        return None
