"""Find jobs over all homes, newest enqueue first, a bounded number of rows a call (S51).

A call walks an index of bodies: by correlation, by tenant or by time. Where jobs of some states are asked
for, and there are few of them now, they are sorted instead. Knows no state by itself: `matches` decides.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import State
from fairlane.store.contract.jobs import FindReply, FindRequest
from fairlane.store.contract.reading import matches
from fairlane.store.contract.request import READ_MOST, Place, from_cursor, to_cursor
from fairlane.store.sqlite.asking import all_rows, one_value
from fairlane.store.sqlite.homes import read_any
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tx import Tx

_SQL = load("find")

_LISTS: Final[dict[State, str]] = {
    State.DELAYED: _SQL.delayed_now,
    State.READY: _SQL.ready_now,
    State.RUNNING: _SQL.running_now,
    State.DEAD: _SQL.dead_now,
}
"""Where the jobs of a state are listed; the other states are history, which is walked by time."""

_Place = tuple[int, bytes]
_LOWEST: Final[_Place] = (-1, b"")
_HIGHEST: Final[_Place] = (2**63 - 1, b"\xff" * 17)


def find(tx: Tx, request: FindRequest) -> FindReply:
    """Give a page, and a cursor if there may be more."""
    top, since = _start(request), (request.since or -1, b"")
    few = _few(tx, request.states)
    last = None if few else _last(tx, request, top)
    bottom = since if last is None else max(last, since)
    values = {**_values(request), **_range(top, bottom)}
    found = _read(tx, request, values, few)
    if len(found) > request.limit:
        found = found[: request.limit]
        return FindReply(tuple(found), to_cursor(Place(found[-1].enqueued_at, found[-1].id)))
    if last is None or last <= since:
        return FindReply(tuple(found), None)
    return FindReply(tuple(found), to_cursor(Place(last[0], UUID(bytes=last[1]))))


def _start(request: FindRequest) -> _Place:
    """Give the place below which to read."""
    place = None if request.cursor is None else from_cursor(request.cursor)
    start = _HIGHEST if place is None else (place.enqueued_at, place.id.bytes)
    return start if request.until is None else min(start, (request.until, b""))


def _few(tx: Tx, states: frozenset[State]) -> str | None:
    """Give a list of all jobs in these states, if they are listed and few enough to be sorted in one call."""
    if not states or not states <= _LISTS.keys():
        return None
    listed: str = " UNION ALL ".join(_LISTS[state] for state in sorted(states))
    is_short = one_value(tx.db, _SQL.length.replace("{list}", listed), (READ_MOST + 1,)) <= READ_MOST
    return listed if is_short else None


def _walk(request: FindRequest) -> str:
    """Give the condition that an index of bodies answers in order."""
    if request.correlation_id is not None:
        return "body.correlation_id = :correlation"
    return "true" if request.scope.tenant is None else "body.tenant = :tenant"


def _last(tx: Tx, request: FindRequest, top: _Place) -> _Place | None:
    """Give the last place that this call may read, unless the walk ends before."""
    values = {**_values(request), **_range(top, _LOWEST), "most": READ_MOST - 1}
    rows = all_rows(tx.db, _SQL.last.replace("{walk}", _walk(request)), values)
    return rows[0] if len(rows) > 1 else None


def _read(tx: Tx, request: FindRequest, values: dict[str, Any], few: str | None) -> list[JobRecord]:
    """Give the jobs of a range in order, one more than asked for if there are more."""
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


def _values(request: FindRequest) -> dict[str, Any]:
    states = [state.value for state in request.states]
    return {
        "tenant": request.scope.tenant,
        "correlation": request.correlation_id,
        "own": _own(request.correlation_id),
        "states": msgspec.json.encode(states).decode() if states else None,
        "queue": request.queue,
        "task": request.task,
        "parent": None if request.parent_id is None else request.parent_id.bytes,
        "tag": None if request.tag is None else request.tag.encode(),
    }


def _range(top: _Place, bottom: _Place) -> dict[str, Any]:
    return {"top": top[0], "top_id": top[1], "bottom": bottom[0], "bottom_id": bottom[1]}


def _own(correlation_id: str | None) -> bytes | None:
    """Give the id of the job that this may be the generated correlation id of: it is in no index."""
    try:
        return None if correlation_id is None else UUID(correlation_id).bytes
    except ValueError:
        return None
