"""Count jobs per tenant, queue and state, a page at a time: each (queue, tenant) keeps six numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from fairlane.model.lifecycle import State
from fairlane.store.contract.dead import DeadCount, DeadCountPage, DeadCountRequest
from fairlane.store.contract.jobs import Count, CountPage, CountRequest
from fairlane.store.contract.request import READ_MOST, CountPlace, from_cursor, to_cursor
from fairlane.store.redis.connect import Wire
from fairlane.store.redis.keys import NAMES

Counted = TypeVar("Counted")

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

    def counts_of(book: Book) -> Iterator[tuple[str, Count]]:
        tenant, queue, counts, _ = book
        for state in _BY_WORD:
            number = counts[_STATES.index(state)]
            if number and request.queue in {None, queue}:
                yield state.value, Count(tenant, queue, state, number)

    return CountPage(*await _page(wire, request, counts_of))


async def count_letters(wire: Wire, request: DeadCountRequest) -> DeadCountPage:
    """Give the numbers of dead letters after a place."""

    def letters_of(book: Book) -> Iterator[tuple[str, DeadCount]]:
        tenant, queue, counts, _ = book
        letters = counts[_STATES.index(State.DEAD)]
        if letters:
            yield "pending", DeadCount(tenant, queue, "pending", letters)

    return DeadCountPage(*await _page(wire, request, letters_of))


async def _page(
    wire: Wire,
    request: CountRequest | DeadCountRequest,
    counted: Callable[[Book], Iterable[tuple[str, Counted]]],
) -> tuple[tuple[Counted, ...], str | None]:
    """Give what is counted in the books after a place, and the next place if there is one."""
    place = None if request.cursor is None else from_cursor(request.cursor, CountPlace)
    first, last = bounds(request.scope.tenant, None if place is None else (place.tenant, place.queue))
    after = ("", "", "") if place is None else (place.tenant, place.queue, place.word)
    found: list[Counted] = []
    read = 0
    while True:
        books = await read_books(wire, "tenants_queues", first, last, _PAGE)
        for book in books:
            for word, one in counted(book):
                here = (book[0], book[1], word)
                if here <= after:
                    continue
                if len(found) == request.limit:
                    return tuple(found), to_cursor(CountPlace(*after))
                found.append(one)
                after = here
        if len(books) < _PAGE:
            return tuple(found), None
        tenant, queue, _, _ = books[-1]
        read += len(books)
        if read >= READ_MOST:
            return tuple(found), to_cursor(CountPlace(tenant, queue, "~"))
        first = f"({tenant}\0{queue}"
