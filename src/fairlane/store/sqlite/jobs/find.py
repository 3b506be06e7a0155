"""Find jobs in any state, newest enqueue first, reading a bounded number of rows per call (S51).

A call walks an index of `body`: by correlation, by tenant or by time. If the request names states and few
jobs are in them, those jobs are sorted instead. SQL narrows the rows; `matches` decides.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.filters import matches
from fairlane.store.contract.jobs import FindReply, FindRequest, TallyRequest
from fairlane.store.contract.request import MAX_ROWS_READ, JobPosition, from_cursor, to_cursor
from fairlane.store.sqlite.query import all_rows, one_value
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.columns import FILTERS
from fairlane.store.sqlite.tables.job_tables import read_any
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("find")

_LISTS: Final[dict[State, str]] = {
    State.DELAYED: _SQL.delayed_now,
    State.READY: _SQL.ready_now,
    State.RUNNING: _SQL.running_now,
    State.DEAD: _SQL.dead_now,
}
"""Statements that list the jobs of a state. The other states are in `history`, which is walked by time."""

_Position = tuple[int, bytes]
_LOWEST: Final[_Position] = (-1, b"")
_HIGHEST: Final[_Position] = (2**63 - 1, b"\xff" * 17)


def find(tx: Transaction, request: FindRequest) -> FindReply:
    """Return a page of jobs, and a cursor if there may be more."""
    top, since = _start(request), (request.since or -1, b"")
    few = _few(tx, request.states)
    last = None if few else _last(tx, request, top)
    bottom = since if last is None else max(last, since)
    values = {**_values(request), **_range(top, bottom)}
    found = _read(tx, request, values, few)
    if len(found) > request.limit:
        found = found[: request.limit]
        return FindReply(tuple(found), to_cursor(JobPosition(found[-1].enqueued_at, found[-1].id)))
    if last is None or last <= since:
        return FindReply(tuple(found), None)
    return FindReply(tuple(found), to_cursor(JobPosition(last[0], UUID(bytes=last[1]))))


def _start(request: FindRequest) -> _Position:
    """Return the position below which to read."""
    place = None if request.cursor is None else from_cursor(request.cursor)
    start = _HIGHEST if place is None else (place.enqueued_at, place.id.bytes)
    return start if request.until is None else min(start, (request.until, b""))


def _few(tx: Transaction, states: frozenset[State]) -> str | None:
    """Return a statement that lists all jobs in these states, if they are few enough to sort in one call."""
    if not states or not states <= _LISTS.keys():
        return None
    listed: str = " UNION ALL ".join(_LISTS[state] for state in sorted(states))
    is_short = one_value(tx.db, _SQL.length.replace("{list}", listed), (MAX_ROWS_READ + 1,)) <= MAX_ROWS_READ
    return listed if is_short else None


def _walk(request: FindRequest) -> str:
    """Return the condition that an index of `body` answers in order."""
    if request.correlation_id is not None:
        return "body.correlation_id = :correlation"
    return "true" if request.scope.tenant is None else "body.tenant = :tenant"


def _last(tx: Transaction, request: FindRequest, top: _Position) -> _Position | None:
    """Return the last position that this call may read; None if the walk ends before."""
    values = {**_values(request), **_range(top, _LOWEST), "limit": MAX_ROWS_READ - 1}
    rows = all_rows(tx.db, _SQL.last.replace("{walk}", _walk(request)), values)
    return rows[0] if len(rows) > 1 else None


def _read(tx: Transaction, request: FindRequest, values: dict[str, Any], few: str | None) -> list[JobRecord]:
    """Return the jobs of a range in order, one more than the limit if there are more."""
    found: list[JobRecord] = []
    if few:
        among, walk = _SQL.walk_few.replace("{list}", few), "true"
    else:
        among, walk = _SQL.walk_all, _walk(request)
    sources = [_SQL.chosen.replace("{from}", among).replace("{walk}", walk)]
    if not few and values["own"] is not None:
        sources.insert(0, _SQL.own)
    for source in sources:
        for row in tx.db.execute(source, values):
            job = read_any(row)
            if matches(job, request):
                found.append(job)
                if len(found) > request.limit:
                    break
    return sorted(found, key=lambda job: (job.enqueued_at, job.id.bytes), reverse=True)


def filter_values(request: FindRequest | TallyRequest) -> dict[str, Any]:
    """Return the parameters of the filters in `find.sql` and `tally.sql`; NULL matches everything."""
    states = sorted(state.value for state in request.states)
    return {
        **{name: getattr(request, name) for name in FILTERS if name != "tenant"},
        "tenant": request.scope.tenant,
        "parent_id": None if request.parent_id is None else request.parent_id.bytes,
        "correlation": request.correlation_id,
        "states": msgspec.json.encode(states).decode() if states else None,
        "tag": None if request.tag is None else request.tag.encode(),
    }


def _values(request: FindRequest) -> dict[str, Any]:
    return {**filter_values(request), "own": _own(request.correlation_id)}


def _range(top: _Position, bottom: _Position) -> dict[str, Any]:
    return {"top": top[0], "top_id": top[1], "bottom": bottom[0], "bottom_id": bottom[1]}


def _own(correlation_id: str | None) -> bytes | None:
    """Return the id of the job whose generated correlation id this may be: those are in no index."""
    try:
        return None if correlation_id is None else UUID(correlation_id).bytes
    except ValueError:
        return None
