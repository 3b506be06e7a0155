"""Count jobs per tenant, queue and state, a page at a time, from counters. Reads no job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from typing import Any

from fairlane.model.lifecycle.states import State
from fairlane.store.contract.jobs import Count, CountPage, CountRequest
from fairlane.store.contract.request import MAX_ROWS_READ, CountPosition, from_cursor, to_cursor
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("count")

_FIRST = CountPosition("", "", "")
_HOT = (State.DELAYED, State.READY, State.RUNNING)  # sorted as they are spelled


def count(tx: Transaction, request: CountRequest) -> CountPage:
    """Return a page of counts; counts of zero are left out."""
    start = _FIRST if request.cursor is None else from_cursor(request.cursor, CountPosition)
    own = request.scope.tenant
    if own is not None and start.tenant < own:
        start = CountPosition(own, "", "")
    hot = tx.db.execute(_SQL.hot, (start.tenant, start.queue))
    finished = tx.db.execute(_SQL.finished, (start.tenant, start.queue, start.label))
    found: list[Count] = []
    last: CountPosition | None = None
    for read, one in enumerate(merge(_hot(hot, start), _finished(finished))):
        if own not in {None, one.tenant}:
            last = None
            break
        if last is not None and (len(found) == request.limit or read >= MAX_ROWS_READ):
            break
        last = CountPosition(one.tenant, one.queue, one.state.value)
        if one.jobs and request.queue in {None, one.queue}:
            found.append(one)
    else:
        last = None
    hot.close()
    finished.close()
    return CountPage(tuple(found), None if last is None else to_cursor(last))


def _hot(rows: Iterable[tuple[Any, ...]], start: CountPosition) -> Iterator[Count]:
    for tenant, queue, *numbers in rows:
        for state, number in zip(_HOT, numbers, strict=True):
            if (tenant, queue, state.value) > (start.tenant, start.queue, start.label):
                yield Count(tenant, queue, state, number)


def _finished(rows: Iterable[tuple[Any, ...]]) -> Iterator[Count]:
    return (Count(tenant, queue, State(state), number) for tenant, queue, state, number in rows)
