"""Get and find dead letters, latest death first, a bounded number of rows a call (S51)."""

from __future__ import annotations

from typing import Any

from fairlane.store.contract.dead import DeadGetRequest, DeadLetter, DeadPage, DeadRequest
from fairlane.store.contract.filters import matches_dead
from fairlane.store.contract.request import MAX_ROWS_READ, JobPosition, to_cursor
from fairlane.store.postgres.connection import Connection, Server
from fairlane.store.postgres.dead.letters import read_letter
from fairlane.store.postgres.dead.scan import Position, scan_of, start_of, values_of
from fairlane.store.postgres.jobs.find import FIRST_CHUNK, MAX_CHUNK
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.statements import load


async def get(server: Server, request: DeadGetRequest) -> DeadLetter | None:
    """Return one letter."""
    rows = await server.fetch(load("dead", server.schema).one, request.id)
    letters = [read_letter(row) for row in rows]
    return letters[0] if letters and request.scope.covers(letters[0].job.tenant) else None


async def find(server: Server, request: DeadRequest) -> DeadPage:
    """Return a page, and a cursor if there may be more."""
    top = start_of(request, request.cursor)
    async with read_transaction(server, in_order=True) as connection:
        return await _find(connection, load("dead", server.schema), request, top)


async def _find(connection: Connection, sql: Any, request: DeadRequest, top: Position) -> DeadPage:
    """Read chunk by chunk, as `jobs.find` does, until the page is full or enough was read."""
    statement = scan_of(sql, request, sql.page, sql.letter)
    found: list[DeadLetter] = []
    left, size = MAX_ROWS_READ, max(FIRST_CHUNK, request.limit + 1)
    while left:
        size = min(size, left)
        rows = await connection.fetch(statement, *values_of(request, top, size + 1))
        letters = [read_letter(row) for row in rows if row["number"] <= size]
        found += (letter for letter in letters if matches_dead(letter, request))
        if len(found) > request.limit:
            found = found[: request.limit]
            return DeadPage(tuple(found), _cursor_after(_position(found[-1])))
        if not rows or rows[-1]["number"] <= size:
            return DeadPage(tuple(found), None)
        top, left, size = _position(letters[-1]), left - size, MAX_CHUNK
    return DeadPage(tuple(found), _cursor_after(top))


def _position(letter: DeadLetter) -> Position:
    return Position(letter.job.settled_at or 0, letter.job.id)


def _cursor_after(position: Position) -> str:
    return to_cursor(JobPosition(*position))
