"""Count jobs per tenant, queue and state, a page at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from typing import Any

from fairlane.model.lifecycle import State
from fairlane.store.contract.jobs import Count, CountPage, CountRequest
from fairlane.store.contract.request import READ_MOST, CountPlace, to_cursor
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tx import Tx

_SQL = load("counting")

_HOT = (State.DELAYED, State.READY, State.RUNNING)  # sorted as they are spelled


def count(tx: Tx, request: CountRequest, start: CountPlace) -> CountPage:
    """Give the counts after a place; zero counts are read but not given."""
    own = request.scope.tenant
    if own is not None and start.tenant < own:
        start = CountPlace(own, "", "")
    hot = tx.db.execute(_SQL.hot, (start.tenant, start.queue))
    finished = tx.db.execute(_SQL.finished, (start.tenant, start.queue, start.word))
    found: list[Count] = []
    last: CountPlace | None = None
    for read, one in enumerate(merge(_hot(hot, start), _finished(finished))):
        if own not in {None, one.tenant}:
            last = None
            break
        if last is not None and (len(found) == request.limit or read >= READ_MOST):
            break
        last = CountPlace(one.tenant, one.queue, one.state.value)
        if one.jobs and request.queue in {None, one.queue}:
            found.append(one)
    else:
        last = None
    hot.close()
    finished.close()
    return CountPage(tuple(found), None if last is None else to_cursor(last))


def _hot(rows: Iterable[tuple[Any, ...]], start: CountPlace) -> Iterator[Count]:
    for tenant, queue, *numbers in rows:
        for state, number in zip(_HOT, numbers, strict=True):
            if (tenant, queue, state.value) > (start.tenant, start.queue, start.word):
                yield Count(tenant, queue, state, number)


def _finished(rows: Iterable[tuple[Any, ...]]) -> Iterator[Count]:
    return (Count(tenant, queue, State(state), number) for tenant, queue, state, number in rows)
