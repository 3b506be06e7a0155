"""Count the jobs that match filters, oldest enqueue first, reading a bounded number of rows per call (S51).

If all states of the request are in one table, a call walks that table by number; else it walks an index of
`body`, by correlation, tenant or time. SQL groups the rows, so that only groups are read.
"""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import Home, State, home
from fairlane.store.contract.filters import Tallies, matches_fields, reason_of
from fairlane.store.contract.jobs import TallyPage, TallyRequest
from fairlane.store.contract.request import check_reading, from_cursor, to_cursor
from fairlane.store.sqlite.jobs.find import filter_values
from fairlane.store.sqlite.query import all_rows, one_value
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_rows import unpack_tags
from fairlane.store.sqlite.tables.job_tables import find_any
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("tally")

_TABLES: Final = {Home.HOT: "live", Home.HISTORY: "history", Home.DEAD: "dead"}
_END: Final = 2**63 - 1


class _At(msgspec.Struct, frozen=True, array_like=True):
    """Where a call stopped: a row's number, and its position by time if the walk is by time."""

    # Cursors come back from callers, so they are limited to values that SQLite can compare.
    seq: Annotated[int, msgspec.Meta(ge=-1, le=_END)] = -1
    enqueued_at: Annotated[int, msgspec.Meta(ge=-1, le=_END)] = -1
    id: bytes = b""


_LAST: Final = _At(_END, _END, b"\xff" * 17)


def tally(tx: Transaction, request: TallyRequest) -> TallyPage:
    """Return the counts of the next rows, and a cursor if there are more."""
    check_reading(request.limit)
    start = _At() if request.cursor is None else from_cursor(request.cursor, _At)
    if request.since is not None:
        start = max(start, _At(-1, request.since, b""), key=lambda at: (at.enqueued_at, at.id))
    walk = _Walk(request, start)
    edge = walk.edge(tx)
    end = edge or _LAST
    found = Tallies()
    for queue, state, because, tags, jobs, first_at in walk.groups(tx, end):
        if request.tag is None or request.tag in unpack_tags(tags):
            found.add(queue, State(state), reason_of(because), jobs, first_at)
    looked_at = request.limit if edge else walk.length(tx, end)
    own = _own(tx, request) if request.cursor is None else None
    if own is not None:
        looked_at += 1
        if matches_fields(own, request):
            found.add_job(own)
    return found.page(looked_at, None if edge is None else to_cursor(edge))


class _Walk:
    """The rows that one call walks."""

    def __init__(self, request: TallyRequest, start: _At) -> None:
        self._home = _home(request)
        self._walk = "true"
        if request.correlation_id is not None:
            # Other tenants' rows with the same correlation id are skipped: they must be neither counted nor
            # shown.
            self._walk = "body.correlation_id = :correlation AND (:tenant IS NULL OR body.tenant = :tenant)"
        elif request.scope.tenant is not None:
            self._walk = "body.tenant = :tenant"
        self._values = {
            **filter_values(request),
            "until": request.until,
            "seq": start.seq,
            "from": start.enqueued_at,
            "from_id": start.id,
            "limit": request.limit - 1,
        }

    def edge(self, tx: Transaction) -> _At | None:
        """Return the last row that this call may read; None if the walk ends before."""
        statement = _SQL.edge_in_order if self._home is None else _SQL.edge_of_home
        rows = all_rows(tx.db, self._filled(statement), self._values)
        return _At(*rows[0]) if len(rows) > 1 else None

    def length(self, tx: Transaction, end: _At) -> int:
        """Return the number of rows from the start to an end."""
        statement = _SQL.length_in_order if self._home is None else _SQL.length_of_home
        length: int = one_value(tx.db, self._filled(statement), self._to(end))
        return length

    def groups(self, tx: Transaction, end: _At) -> list[tuple[Any, ...]]:
        """Return the groups of matching rows, up to an end."""
        is_home = self._home is not None
        statement = _SQL.tally.replace("{from}", _SQL.from_home if is_home else _SQL.from_bodies)
        statement = statement.replace("{range}", _SQL.range_of_home if is_home else _SQL.range_in_order)
        return all_rows(tx.db, self._filled(statement), self._to(end))

    def _filled(self, statement: str) -> str:
        return statement.replace("{home}", self._home or "body").replace("{walk}", self._walk)

    def _to(self, end: _At) -> dict[str, Any]:
        return {**self._values, "last": end.seq, "upto": end.enqueued_at, "upto_id": end.id}


def _home(request: TallyRequest) -> str | None:
    """Return the table that has all rows of the request's states; None if an index of `body` is walked."""
    narrow = (request.scope.tenant, request.correlation_id, request.since, request.until)
    if any(one is not None for one in narrow):
        return None
    homes = {home(state) for state in request.states}
    return _TABLES[homes.pop()] if len(homes) == 1 else "body"


def _own(tx: Transaction, request: TallyRequest) -> JobRecord | None:
    """Return the job whose generated correlation id the request names: those are in no index."""
    try:
        id = None if request.correlation_id is None else UUID(request.correlation_id)
    except ValueError:
        return None
    if id is None or one_value(tx.db, _SQL.own, (id.bytes,)) is None:
        return None
    job = find_any(tx, [id])[id]
    return job if request.scope.covers(job.tenant) else None
