"""The dead-letter facet: read jobs that will not run again unless a person says so."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from fairlane.model.failure import ErrorClass
from fairlane.store.contract.dead import (
    DeadCount,
    DeadCountPage,
    DeadCountRequest,
    DeadGetRequest,
    DeadLetter,
    DeadPage,
    DeadRequest,
)
from fairlane.store.contract.filters import matches_dead
from fairlane.store.contract.request import (
    MAX_ROWS_READ,
    CountPosition,
    JobPosition,
    check_page,
    from_cursor,
    to_cursor,
)
from fairlane.store.postgres.connection import Connection, Server
from fairlane.store.postgres.jobs.find import FIRST_CHUNK, MAX_CHUNK
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.rows import read_record
from fairlane.store.postgres.statements import load

_LAST: Final = (2**63 - 1, UUID(int=2**128 - 1))


class PostgresDead:
    """Dead letters, read only."""

    def __init__(self, server: Server) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._sql = load("dead", server.schema)

    async def get(self, request: DeadGetRequest) -> DeadLetter | None:
        rows = await self._server.fetch(self._sql.one, request.id)
        letters = [_letter(row) for row in rows]
        return letters[0] if letters and request.scope.covers(letters[0].job.tenant) else None

    async def find(self, request: DeadRequest) -> DeadPage:
        top = _LAST
        if request.cursor is not None:
            position = from_cursor(request.cursor)
            top = (position.enqueued_at, position.id)
        async with read_transaction(self._server, in_order=True) as connection:
            return await self._find(connection, request, top)

    async def count(self, request: DeadCountRequest) -> DeadCountPage:
        check_page(request.limit)
        start = (
            CountPosition("", "", "")
            if request.cursor is None
            else from_cursor(request.cursor, CountPosition)
        )
        values = (request.scope.tenant, start.tenant, start.queue, start.label, request.limit + 1)
        async with read_transaction(self._server) as connection:
            found = [DeadCount(*row) for row in await connection.fetch(self._sql.counts, *values)]
        page, rest = found[: request.limit], found[request.limit :]
        last = CountPosition(page[-1].tenant, page[-1].queue, page[-1].review) if page and rest else None
        return DeadCountPage(tuple(page), None if last is None else to_cursor(last))

    async def _find(self, connection: Connection, request: DeadRequest, top: tuple[int, UUID]) -> DeadPage:
        """Read chunk by chunk, as `jobs.find` does, until the page is full or enough was read."""
        found: list[DeadLetter] = []
        left, size = MAX_ROWS_READ, max(FIRST_CHUNK, request.limit + 1)
        chunk = self._sql.chunk if request.scope.tenant is None else self._sql.chunk_of_tenant
        page = self._sql.page.replace("{chunk}", chunk)
        while left:
            size = min(size, left)
            rows = await connection.fetch(page, *top, size + 1, *_filters(request))
            letters = [_letter(row) for row in rows if row["number"] <= size]
            found += (letter for letter in letters if matches_dead(letter, request))
            if len(found) > request.limit:
                found = found[: request.limit]
                return DeadPage(tuple(found), to_cursor(JobPosition(*_position(found[-1]))))
            if not rows or rows[-1]["number"] <= size:
                return DeadPage(tuple(found), None)
            top, left, size = _position(letters[-1]), left - size, MAX_CHUNK
        return DeadPage(tuple(found), to_cursor(JobPosition(*top)))


def _filters(request: DeadRequest) -> tuple[Any, ...]:
    return (
        request.scope.tenant,
        request.queue,
        request.task,
        request.error_class,
        request.review,
        request.since,
        request.until,
    )


def _position(letter: DeadLetter) -> tuple[int, UUID]:
    return letter.job.settled_at or 0, letter.job.id


def _letter(row: Any) -> DeadLetter:
    error_class = row["error_class"]
    return DeadLetter(
        read_record(row), None if error_class is None else ErrorClass(error_class), row["review"]
    )
