"""The dead-letter facet: read what will not run again without a person."""

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
from fairlane.store.contract.reading import is_wanted
from fairlane.store.contract.request import (
    READ_MOST,
    CountPlace,
    Place,
    check_page,
    from_cursor,
    to_cursor,
)
from fairlane.store.sqlite.asking import one_row
from fairlane.store.sqlite.rows import BODY_WIDTH, STATUS_WIDTH, Row, to_record
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tx import Tx
from fairlane.store.sqlite.writer import Reader

_SQL = load("dead")
_LAST = (2**63 - 1, b"\xff" * 17)


class SqliteDead:
    """Dead letters, stored and read."""

    def __init__(self, reader: Reader) -> None:
        """Share the file with the other facets."""
        self._reader = reader

    async def get(self, request: DeadGetRequest) -> DeadLetter | None:
        """See the contract."""

        def read(tx: Tx) -> DeadLetter | None:
            row = one_row(tx.db, _SQL.one, (request.id.bytes,))
            letter = None if row is None else _letter(row)
            return letter if letter is not None and request.scope.covers(letter.job.tenant) else None

        return await self._reader.run(read)

    async def find(self, request: DeadRequest) -> DeadPage:
        """See the contract."""
        start = _LAST
        if request.cursor is not None:
            place = from_cursor(request.cursor)
            start = (place.enqueued_at, place.id.bytes)
        return await self._reader.run(lambda tx: _find(tx, request, start))

    async def count(self, request: DeadCountRequest) -> DeadCountPage:
        """See the contract."""
        check_page(request.limit)
        start = CountPlace("", "", "") if request.cursor is None else from_cursor(request.cursor, CountPlace)
        values = (request.scope.tenant, start.tenant, start.queue, start.word, request.limit + 1)

        def read(tx: Tx) -> DeadCountPage:
            found = [DeadCount(*row) for row in tx.db.execute(_SQL.counts, values)]
            page, rest = found[: request.limit], found[request.limit :]
            last = CountPlace(page[-1].tenant, page[-1].queue, page[-1].review) if page and rest else None
            return DeadCountPage(tuple(page), None if last is None else to_cursor(last))

        return await self._reader.run(read)


def _letter(row: Row) -> DeadLetter:
    job = to_record(row[:BODY_WIDTH], row[BODY_WIDTH : BODY_WIDTH + STATUS_WIDTH])
    error_class, review = row[BODY_WIDTH + STATUS_WIDTH :]
    return DeadLetter(job, None if error_class is None else ErrorClass(error_class), review)


def _find(tx: Tx, request: DeadRequest, start: tuple[int, bytes]) -> DeadPage:
    found: list[DeadLetter] = []
    last: tuple[int, UUID] | None = None
    rows = tx.db.execute(_SQL.page, (*start, request.scope.tenant))
    for read, row in enumerate(rows):
        if last is not None and (len(found) == request.limit or read == READ_MOST):
            rows.close()
            return DeadPage(tuple(found), to_cursor(Place(*last)))
        letter = _letter(row)
        last = (letter.job.settled_at or 0, letter.job.id)
        if is_wanted(letter, request):
            found.append(letter)
    return DeadPage(tuple(found), None)
