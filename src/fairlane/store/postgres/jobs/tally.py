"""Tally the jobs that meet filters, oldest enqueue first, a bounded number of rows a call (S51).

One statement scans the indexes of the homes concerned, by correlation, tenant or time, and groups what it
meets: no job leaves the server. If jobs in current states are asked for and there are few of them, they are
sorted instead.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias
from uuid import UUID

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import Home, State, home
from fairlane.store.contract.filters import Tallies, matches_fields
from fairlane.store.contract.jobs import TallyPage, TallyRequest
from fairlane.store.contract.request import JobPosition, check_reading, from_cursor, to_cursor
from fairlane.store.postgres.connection import Connection, Server
from fairlane.store.postgres.jobs.find import are_few, as_id, filters_of, literal
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.rows import read_record
from fairlane.store.postgres.statements import load

_Position: TypeAlias = tuple[int, UUID]

_LOWEST: Final = UUID(int=0)
_START: Final[_Position] = (-1, _LOWEST)
_END: Final[_Position] = (2**63 - 1, UUID(int=2**128 - 1))


async def tally(server: Server, request: TallyRequest) -> TallyPage:
    """Return what the next rows add up to, and a cursor if there are more."""
    check_reading(request.limit)
    position = None if request.cursor is None else from_cursor(request.cursor)
    start: _Position = _START if position is None else (position.enqueued_at, position.id)
    if request.since is not None:
        start = max(start, (max(request.since, 0) - 1, _END[1]))
    end = _END if request.until is None else (max(request.until, 0), _LOWEST)
    found = Tallies()
    looked_at = 0
    last: JobPosition | None = None
    async with read_transaction(server, in_order=True) as connection:
        statement = await _statement(connection, server.schema, request)
        values = (*start, *end, request.limit + 1, *filters_of(request))
        for queue, state, reason, jobs, at, id in await connection.fetch(statement, *values):
            if queue is not None:
                found.add(queue, State(state), reason, jobs, at)
            else:
                looked_at = min(jobs, request.limit)
                last = JobPosition(at, id) if jobs > request.limit else None
        own = await _own(connection, server.schema, request) if position is None else None
    if own is not None:
        looked_at += 1
        if matches_fields(own, request):
            found.add_job(own)
    return found.page(looked_at, None if last is None else to_cursor(last))


async def _statement(connection: Connection, schema: str, request: TallyRequest) -> str:
    """Choose where to read: the homes of the states that are asked for, or lists of these jobs if short."""
    sql = load("tally", schema)
    states = request.states or frozenset(State)
    homes = {home(state) for state in states}
    text = sql.chunk
    if request.correlation_id is not None:
        text = sql.chunk_of_correlation
    elif request.scope.tenant is not None:
        text = sql.chunk_of_tenant
    elif homes == {Home.HOT} and await are_few(connection, load("find", schema), states):
        lists = [sql.listed.replace("{state}", literal(state)) for state in sorted(states)]
        return _filled(sql, text, lists)
    texts = {Home.HOT: (sql.waiting, sql.running), Home.HISTORY: (sql.history,), Home.DEAD: (sql.dead,)}
    return _filled(sql, text, [one for where, read in texts.items() if where in homes for one in read])


def _filled(sql: Any, text: str, homes: list[str]) -> str:
    chunks = " UNION ALL ".join(text.replace("{home}", one) for one in homes)
    statement: str = sql.tally.replace("{chunks}", chunks)
    return statement


async def _own(connection: Connection, schema: str, request: TallyRequest) -> JobRecord | None:
    id = as_id(request.correlation_id)
    rows = [] if id is None else await connection.fetch(load("tally", schema).own, id)
    jobs = [job for job in map(read_record, rows) if request.scope.covers(job.tenant)]
    return jobs[0] if jobs else None
