"""Find dead letters, and count them per tenant, queue and review."""

from __future__ import annotations

from fairlane.store.contract.dead import DeadCount, DeadCountPage, DeadCountRequest, DeadPage, DeadRequest
from fairlane.store.contract.request import MAX_ROWS_READ, CountPosition, from_cursor, to_cursor
from fairlane.store.sqlite.dead.walk import LetterWalk, cursor_after
from fairlane.store.sqlite.query import all_rows
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.letter_rows import to_letter
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("dead")


def find(tx: Transaction, request: DeadRequest) -> DeadPage:
    """Return a page, and a cursor if there may be more."""
    walk = LetterWalk(request, request.cursor)
    rest = walk.stop_after(tx, MAX_ROWS_READ)
    found = tuple(map(to_letter, walk.rows(tx, _SQL.page, limit=request.limit + 1)))
    if len(found) > request.limit:
        found = found[: request.limit]
        rest = cursor_after(found[-1].job.settled_at or 0, found[-1].job.id.bytes)
    return DeadPage(found, rest)


def count(tx: Transaction, request: DeadCountRequest) -> DeadCountPage:
    """Return a page of counts."""
    first = CountPosition("", "", "")
    start = first if request.cursor is None else from_cursor(request.cursor, CountPosition)
    values = (request.scope.tenant, start.tenant, start.queue, start.label, request.limit + 1)
    found = [DeadCount(*row) for row in all_rows(tx.db, _SQL.counts, values)]
    page, rest = found[: request.limit], found[request.limit :]
    last = CountPosition(page[-1].tenant, page[-1].queue, page[-1].review) if page and rest else None
    return DeadCountPage(tuple(page), None if last is None else to_cursor(last))
