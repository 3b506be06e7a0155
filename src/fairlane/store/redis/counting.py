"""Count jobs per tenant, queue and state, a page at a time: each (queue, tenant) keeps six numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlane.model.lifecycle import State
from fairlane.store.contract.dead import DeadCount, DeadCountPage, DeadCountRequest
from fairlane.store.contract.jobs import Count, CountPage, CountRequest
from fairlane.store.contract.request import READ_MOST, CountPlace, from_cursor, to_cursor
from fairlane.store.redis.connect import Wire
from fairlane.store.redis.keys import NAMES

_PAGE: Final = 500
_STATES: Final = tuple(State)
_BY_WORD: Final = sorted(State, key=lambda state: state.value)

Book = tuple[str, str, list[int], list[str]]
"""Two names in the order that was asked for, the counts by state, and tasks of unfinished jobs."""


async def read_books(
    wire: Wire, name: str, first: str, last: str, most: int, *, tasks: bool = False
) -> list[Book]:
    """Give the next books in one of their orders; `first` and `last` are as BYLEX takes them."""
    rows: list[list[Any]] = await wire.run("books", NAMES[name], first, last, most, "tasks" if tasks else "")
    return [
        (one.decode(), other.decode(), counts, [task.decode() for task in some])
        for one, other, counts, some in rows
    ]


def bounds(tenant: str | None, start: tuple[str, str] | None) -> tuple[str, str]:
    """Give the range of books by (tenant, queue), from a place on, of one tenant or of all."""
    first, last = ("-", "+") if tenant is None else (f"[{tenant}\0", f"({tenant}\1")
    if start is not None and (tenant is None or start[0] >= tenant):
        first = f"[{start[0]}\0{start[1]}"
    return first, last


async def count(wire: Wire, request: CountRequest) -> CountPage:
    """Give the counts after a place; zero counts are read but not given."""
    place = None if request.cursor is None else from_cursor(request.cursor, CountPlace)
    first, last = bounds(request.scope.tenant, None if place is None else (place.tenant, place.queue))
    after = ("", "", "") if place is None else (place.tenant, place.queue, place.word)
    found: list[Count] = []
    read = 0
    while True:
        books = await read_books(wire, "tenants_queues", first, last, _PAGE)
        for one in _counts(books):
            key = (one.tenant, one.queue, one.state.value)
            if key <= after or request.queue not in {None, one.queue}:
                continue
            if len(found) == request.limit:
                last_one = found[-1]
                place = CountPlace(last_one.tenant, last_one.queue, last_one.state.value)
                return CountPage(tuple(found), to_cursor(place))
            found.append(one)
        if len(books) < _PAGE:
            return CountPage(tuple(found), None)
        tenant, queue, _, _ = books[-1]
        read += len(books)
        if read >= READ_MOST:
            return CountPage(tuple(found), to_cursor(CountPlace(tenant, queue, "~")))
        first = f"({tenant}\0{queue}"


def _counts(books: list[Book]) -> Iterator[Count]:
    for tenant, queue, counts, _ in books:
        for state in _BY_WORD:
            number = counts[_STATES.index(state)]
            if number:
                yield Count(tenant, queue, state, number)


async def count_letters(wire: Wire, request: DeadCountRequest) -> DeadCountPage:
    """Give the numbers of dead letters after a place."""
    place = None if request.cursor is None else from_cursor(request.cursor, CountPlace)
    first, last = bounds(request.scope.tenant, None if place is None else (place.tenant, place.queue))
    after = ("", "", "") if place is None else (place.tenant, place.queue, place.word)
    found: list[DeadCount] = []
    read = 0
    while True:
        books = await read_books(wire, "tenants_queues", first, last, _PAGE)
        for tenant, queue, counts, _ in books:
            letters = counts[_STATES.index(State.DEAD)]
            if not letters or (tenant, queue, "pending") <= after:
                continue
            if len(found) == request.limit:
                end = found[-1]
                return DeadCountPage(tuple(found), to_cursor(CountPlace(end.tenant, end.queue, end.review)))
            found.append(DeadCount(tenant, queue, "pending", letters))
        if len(books) < _PAGE:
            return DeadCountPage(tuple(found), None)
        tenant, queue, _, _ = books[-1]
        read += len(books)
        if read >= READ_MOST:
            return DeadCountPage(tuple(found), to_cursor(CountPlace(tenant, queue, "~")))
        first = f"({tenant}\0{queue}"
