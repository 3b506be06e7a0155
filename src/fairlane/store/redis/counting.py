"""Count jobs per tenant, queue and state, a page at a time: each (queue, tenant) keeps six numbers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from fairlane.model.lifecycle import State
from fairlane.store.contract.dead import DeadCount, DeadCountPage, DeadCountRequest
from fairlane.store.contract.jobs import Count, CountPage, CountRequest
from fairlane.store.contract.request import READ_MOST, CountPlace, from_cursor, to_cursor
from fairlane.store.redis.connect import Wire

Counted = TypeVar("Counted")

_PAGE: Final = 200
_STATES: Final = tuple(State)
_BY_WORD: Final = sorted(State, key=lambda state: state.value)

Book = tuple[str, str, list[int], list[str]]
"""A tenant, a queue, the counts by state, and tasks of unfinished jobs."""

ALL_QUEUES: Final = "\U0010ffff"
"""In a place, after every queue of its tenant."""


async def read_books(
    wire: Wire,
    place: tuple[str, str] = ("", ""),
    *,
    is_after: bool = False,
    tenant: str | None = None,
    queue: str | None = None,
    tasks: bool = False,
) -> tuple[list[Book], bool]:
    """Give the next books in the order of tenant and queue, from a place on or after it; say if that was all.

    The server has them in the order of queue and tenant alone: another one would take 75 bytes for each
    tenant. So all queues are read at once, and what is beyond the end of one of them is left for the next.
    """
    words = (queue or "", *place, "(" if is_after else "[", tenant or "", _PAGE, "tasks" if tasks else "")
    rows: list[tuple[bytes, int, list[Any]]] = await wire.run("books", *words)
    books: list[Book] = []
    ends: list[tuple[str, str]] = []
    for name, is_cut, found in rows:
        one = name.decode()
        for who, counts, some in found:
            own = await tasks_of(wire, one, who.decode()) if tasks and some is None else some or ()
            books.append((who.decode(), one, counts, [task.decode() for task in own]))
        ends += [books[-1][:2]] if is_cut else []
    end = min(ends, default=None)
    return sorted(book for book in books if end is None or book[:2] <= end), end is not None


async def tasks_of(wire: Wire, queue: str, tenant: str) -> list[bytes]:
    """Name the tasks of unfinished jobs of a tenant that has too many of them for its book."""
    found: list[bytes] = await wire.ask("HKEYS", wire.keys("strands", queue, tenant))
    return found


async def queue_names(wire: Wire) -> list[str]:
    """Name all queues, in order."""
    return sorted(name.decode() for name in await wire.ask("HKEYS", wire.keys("queues")))


async def books_in(wire: Wire, queue: str, after: str = "", tenant: str | None = None) -> AsyncIterator[Book]:
    """Give the books of a queue in the order of tenants, after one."""
    place, is_more = (after, queue), True
    while is_more:
        books, is_more = await read_books(wire, place, is_after=True, tenant=tenant, queue=queue)
        for book in books:
            if book[0] > after:
                yield book
            place = book[:2]


async def count(wire: Wire, request: CountRequest) -> CountPage:
    """Give the counts after a place; zero counts are read but not given."""

    def counts_of(book: Book) -> Iterator[tuple[str, Count]]:
        tenant, queue, counts, _ = book
        for state in _BY_WORD:
            number = counts[_STATES.index(state)]
            if number:
                yield state.value, Count(tenant, queue, state, number)

    return CountPage(*await _page(wire, request, counts_of, request.queue))


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
    queue: str | None = None,
) -> tuple[tuple[Counted, ...], str | None]:
    """Give what is counted in the books after a place, and the next place if there is one."""
    start = CountPlace("", "", "") if request.cursor is None else from_cursor(request.cursor, CountPlace)
    after = (start.tenant, start.queue, start.word)
    place, is_after = after[:2], False
    found: list[Counted] = []
    read = 0
    while True:
        books, is_more = await read_books(
            wire, place, is_after=is_after, tenant=request.scope.tenant, queue=queue
        )
        for book in books:
            for word, one in counted(book):
                here = (book[0], book[1], word)
                if here <= after:
                    continue
                if len(found) == request.limit:
                    return tuple(found), to_cursor(CountPlace(*after))
                found.append(one)
                after = here
        if not is_more:
            return tuple(found), None
        read += len(books)
        place, is_after = books[-1][:2], True
        if read >= READ_MOST:
            return tuple(found), to_cursor(CountPlace(*place, "~"))
