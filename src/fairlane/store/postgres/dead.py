"""The dead-letter facet: read what will not run again without a person."""

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
from fairlane.store.contract.reading import is_wanted
from fairlane.store.contract.request import (
    READ_MOST,
    CountPlace,
    Place,
    check_page,
    from_cursor,
    to_cursor,
)
from fairlane.store.postgres.connect import Connection, Server
from fairlane.store.postgres.finding import FIRST_STRETCH, LONGEST_STRETCH
from fairlane.store.postgres.reading import reading
from fairlane.store.postgres.rows import FINISHED_WIDTH, Row, finished_record
from fairlane.store.postgres.statements import load

_LAST: Final = (2**63 - 1, UUID(int=2**128 - 1))


class PostgresDead:
    """Dead letters, read."""

    def __init__(self, server: Server) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._sql = load("dead", server.schema)

    async def get(self, request: DeadGetRequest) -> DeadLetter | None:
        """See the contract."""
        rows = await self._server.fetch(self._sql.one, request.id)
        letters = [_letter(row) for row in rows]
        return letters[0] if letters and request.scope.covers(letters[0].job.tenant) else None

    async def find(self, request: DeadRequest) -> DeadPage:
        """See the contract."""
        top = _LAST
        if request.cursor is not None:
            place = from_cursor(request.cursor)
            top = (place.enqueued_at, place.id)
        async with reading(self._server, in_order=True) as connection:
            return await self._find(connection, request, top)

    async def count(self, request: DeadCountRequest) -> DeadCountPage:
        """See the contract."""
        check_page(request.limit)
        start = CountPlace("", "", "") if request.cursor is None else from_cursor(request.cursor, CountPlace)
        values = (request.scope.tenant, start.tenant, start.queue, start.word, request.limit + 1)
        async with reading(self._server) as connection:
            found = [DeadCount(*row) for row in await connection.fetch(self._sql.counts, *values)]
        page, rest = found[: request.limit], found[request.limit :]
        last = CountPlace(page[-1].tenant, page[-1].queue, page[-1].review) if page and rest else None
        return DeadCountPage(tuple(page), None if last is None else to_cursor(last))

    async def _find(self, connection: Connection, request: DeadRequest, top: tuple[int, UUID]) -> DeadPage:
        """Read stretch by stretch, as `finding` does, until the page is full or enough was read."""
        found: list[DeadLetter] = []
        left, size = READ_MOST, max(FIRST_STRETCH, request.limit + 1)
        stretch = self._sql.stretch if request.scope.tenant is None else self._sql.stretch_of_tenant
        page = self._sql.page.replace("{stretch}", stretch)
        while left:
            size = min(size, left)
            rows = await connection.fetch(page, *top, size + 1, *_filters(request))
            letters = [_letter(row[1:]) for row in rows if row[0] <= size]
            found += (letter for letter in letters if is_wanted(letter, request))
            if len(found) > request.limit:
                found = found[: request.limit]
                return DeadPage(tuple(found), to_cursor(Place(*_place(found[-1]))))
            if not rows or rows[-1][0] <= size:
                return DeadPage(tuple(found), None)
            top, left, size = _place(letters[-1]), left - size, LONGEST_STRETCH
        return DeadPage(tuple(found), to_cursor(Place(*top)))


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


def _place(letter: DeadLetter) -> tuple[int, UUID]:
    return letter.job.settled_at or 0, letter.job.id


def _letter(row: Row) -> DeadLetter:
    error_class, review = row[FINISHED_WIDTH : FINISHED_WIDTH + 2]
    return DeadLetter(finished_record(row), None if error_class is None else ErrorClass(error_class), review)
