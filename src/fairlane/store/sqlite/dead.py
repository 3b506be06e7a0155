"""The dead-letter facet: read jobs that run again only if a person says so. Writes nothing."""

from __future__ import annotations

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
from fairlane.store.sqlite.query import one_row
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_rows import BODY_WIDTH, Row, to_finished
from fairlane.store.sqlite.threads import ReaderThread
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("dead")
_LAST = (2**63 - 1, b"\xff" * 17)


class SqliteDead:
    """Dead letters, as operators read them."""

    def __init__(self, reader: ReaderThread) -> None:
        """Share the file with the other facets."""
        self._reader = reader

    async def get(self, request: DeadGetRequest) -> DeadLetter | None:
        def read(tx: Transaction) -> DeadLetter | None:
            row = one_row(tx.db, _SQL.one, (request.id.bytes,))
            letter = None if row is None else _letter(row)
            return letter if letter is not None and request.scope.covers(letter.job.tenant) else None

        return await self._reader.run(read)

    async def find(self, request: DeadRequest) -> DeadPage:
        start = _LAST
        if request.cursor is not None:
            place = from_cursor(request.cursor)
            start = (place.enqueued_at, place.id.bytes)
        return await self._reader.run(lambda tx: _find(tx, request, start))

    async def count(self, request: DeadCountRequest) -> DeadCountPage:
        check_page(request.limit)
        start = (
            CountPosition("", "", "")
            if request.cursor is None
            else from_cursor(request.cursor, CountPosition)
        )
        values = (request.scope.tenant, start.tenant, start.queue, start.label, request.limit + 1)

        def read(tx: Transaction) -> DeadCountPage:
            found = [DeadCount(*row) for row in tx.db.execute(_SQL.counts, values)]
            page, rest = found[: request.limit], found[request.limit :]
            last = CountPosition(page[-1].tenant, page[-1].queue, page[-1].review) if page and rest else None
            return DeadCountPage(tuple(page), None if last is None else to_cursor(last))

        return await self._reader.run(read)


def _letter(row: Row) -> DeadLetter:
    *status, error_class, review = row[BODY_WIDTH:]
    job = to_finished(row[:BODY_WIDTH], status)
    return DeadLetter(job, None if error_class is None else ErrorClass(error_class), review)


def _find(tx: Transaction, request: DeadRequest, start: tuple[int, bytes]) -> DeadPage:
    found: list[DeadLetter] = []
    last: tuple[int, UUID] | None = None
    rows = tx.db.execute(_SQL.page, (*start, request.scope.tenant))
    for read, row in enumerate(rows):
        if last is not None and (len(found) == request.limit or read == MAX_ROWS_READ):
            rows.close()
            return DeadPage(tuple(found), to_cursor(JobPosition(*last)))
        letter = _letter(row)
        last = (letter.job.settled_at or 0, letter.job.id)
        if matches_dead(letter, request):
            found.append(letter)
    return DeadPage(tuple(found), None)
