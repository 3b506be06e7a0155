"""The upkeep facet: what is kept and for how long, the store's own books."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final
from uuid import UUID

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import WAITING, Because, Home, State, because, home, is_finished
from fairlane.model.moves import erased, stopped
from fairlane.store.contract.inspection import Inspection, InspectRequest
from fairlane.store.contract.request import READ_MOST, BookPlace, Request, check_page, from_cursor, to_cursor
from fairlane.store.contract.request import Place as CursorPlace
from fairlane.store.contract.upkeep import (
    Census,
    CensusRequest,
    DedicateRequest,
    ForgetReply,
    ForgetRequest,
    GateBook,
    MigrateReply,
    PruneReply,
    PruneRequest,
    PurgeReply,
    PurgeRequest,
    StrandBook,
    not_dedicated,
)
from fairlane.store.redis.connect import Wire
from fairlane.store.redis.counting import Book, books_in, queue_names, read_books
from fairlane.store.redis.finding import place_of
from fairlane.store.redis.homes import PAGE, Change, Homes, Place
from fairlane.store.redis.inspection import inspect
from fairlane.store.redis.jobs import ask_to_stop
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.pruning import prune
from fairlane.store.redis.rows import Kept, to_attempts, to_body

_STATES: Final = tuple(State)
SCHEMA: Final = 1


class RedisUpkeep:
    """The store itself."""

    def __init__(self, wire: Wire, close: Callable[[], Awaitable[None]]) -> None:
        """Share the connections with the other facets."""
        self._wire = wire
        self._homes = Homes(wire)
        self._close = close

    async def migrate(self) -> MigrateReply:
        """See the contract: there is one form so far."""
        await self._wire.ask("HSETNX", self._wire.keys("meta"), "schema", SCHEMA)
        return MigrateReply(SCHEMA, SCHEMA)

    async def plan(self) -> MigrateReply:
        """See the contract: there is one form so far."""
        return MigrateReply(SCHEMA, SCHEMA)

    async def prune(self, request: PruneRequest) -> PruneReply:
        """See the contract."""
        return await prune(self._wire, request)

    async def forget(self, request: ForgetRequest) -> ForgetReply:
        """See the contract."""
        tenant = request.scope.tenant
        if tenant is None:
            message = "forget needs the scope of one tenant"
            raise ValueError(message)
        place = _start(request.cursor)
        running = await self._stop_running(request, tenant)
        word = because(Because.PURGED, request.reason)

        def is_full(kept: Kept) -> bool:
            job = kept.job
            return job.state is not State.RUNNING and not (is_finished(job.state) and job == erased(job))

        def erase(now: Instant, kept: Kept) -> Change:
            return _erased(kept, word, now)

        key = NAMES["by_tenant"] + tenant
        done, cursor = await self._sweep(key, place, request.most, is_full, erase)
        if cursor is None:
            await self._forget_keys(tenant)
        return ForgetReply(done, running, cursor)

    async def purge(self, request: PurgeRequest) -> PurgeReply:
        """See the contract."""
        place = _start(request.cursor)
        tenant = request.scope.tenant
        word = because(Because.PURGED, request.reason)

        def is_meant(kept: Kept) -> bool:
            return request.queue in {None, kept.job.queue} and request.task in {None, kept.job.task}

        def end(now: Instant, kept: Kept) -> Change:
            return Change(kept, stopped(kept.job, State.CANCELLED, word, now))

        key = NAMES["all"] if tenant is None else NAMES["by_tenant"] + tenant
        return PurgeReply(*await self._sweep(key, place, request.most, is_meant, end, WAITING))

    async def _sweep(
        self,
        key: str,
        place: Place | None,
        most: int,
        is_meant: Callable[[Kept], bool],
        becomes: Callable[[Instant, Kept], Change],
        states: Iterable[State] = (),
    ) -> tuple[int, str | None]:
        """Change jobs in the order of enqueue, from a place on; say how many, and where to go on.

        Of those in no other than these states, if any are named: the others are not even read.
        """
        done = looked = 0
        while True:
            now, page = await self._homes.walk(key, up=True, start=place, most=PAGE, states=states)
            meant = [kept for _, kept in page if kept is not None and is_meant(kept)]
            changes = [becomes(now, kept) for kept in meant[: most - done]]
            written = set(await self._homes.write(changes, now))
            done += len(written)
            if len(meant) > len(changes):
                # One that changed meanwhile counts as met: it moved after this pass had come by.
                last = changes[-1].kept.job if changes else None
                return done, _cursor(place if last is None else place_of(last))
            looked += len(page)
            place = page[-1][0] if page else place
            if len(page) < PAGE:
                return done, None
            if looked >= READ_MOST:
                return done, _cursor(place)

    async def _stop_running(self, request: ForgetRequest, tenant: str) -> int:
        """Ask what runs of a tenant to stop; say how many there are."""
        word = because(Because.ASKED, request.reason)
        place: Place | None = None
        running = 0
        while True:
            now, page = await self._homes.walk(NAMES["leases"], up=True, start=place, most=PAGE)
            mine = [kept for _, kept in page if kept is not None and kept.job.tenant == tenant]
            await self._homes.write([ask_to_stop(kept, word) for kept in mine], now)
            running += len(mine)
            if len(page) < PAGE:
                return running
            place = page[-1][0]

    async def _forget_keys(self, tenant: str) -> None:
        start, looked = 0, PAGE
        while looked == PAGE:
            looked, removed = await self._wire.run("keys_out", "", tenant, start, PAGE)
            start += looked - removed

    async def census(self, request: CensusRequest) -> Census:
        """See the contract."""
        check_page(request.limit)
        start = BookPlace("", "") if request.cursor is None else from_cursor(request.cursor, BookPlace)
        tenant = request.scope.tenant
        books, cursor = await self._books(tenant, start, request.limit)
        if request.cursor is not None:
            return Census(homes={}, tenants=books, gates=(), idempotency_keys=0, dedup_keys=0, cursor=cursor)
        jobs, finished, keys, dedup, gates = await self._wire.run("census", tenant or "")
        by_home = dict.fromkeys(Home, 0)
        if tenant is None:
            finished = dict(zip(_STATES, finished, strict=True))
            by_home[Home.HOT] = jobs - sum(finished.values())
        else:
            gates, finished = [], await self._counts_of(tenant)
        for state, number in finished.items():
            by_home[home(state)] += number
        used = zip(gates[::2], gates[1::2], strict=True)
        return Census(
            homes={one: number for one, number in by_home.items() if number},
            tenants=books,
            gates=tuple(sorted(GateBook(gate.decode(), int(number)) for gate, number in used)),
            idempotency_keys=keys,
            dedup_keys=dedup,
            cursor=cursor,
        )

    async def _counts_of(self, tenant: str) -> dict[State, int]:
        books, _ = await read_books(self._wire, tenant=tenant)
        return {state: sum(book[2][i] for book in books) for i, state in enumerate(_STATES)}

    async def _books(
        self, tenant: str | None, start: BookPlace, most: int
    ) -> tuple[tuple[StrandBook, ...], str | None]:
        found: list[StrandBook] = []
        for queue in await queue_names(self._wire):
            if queue < start.queue:
                continue
            after = start.tenant if queue == start.queue else ""
            async for book in books_in(self._wire, queue, after, tenant):
                one = _book(book)
                if _is_any(one) and len(found) == most:
                    return tuple(found), to_cursor(BookPlace(found[-1].queue, found[-1].tenant))
                found += [one] if _is_any(one) else []
        return tuple(found), None

    async def gates(self, request: Request) -> tuple[GateBook, ...]:
        """See the contract."""
        if request.scope.tenant is not None:
            return ()
        used = await self._wire.ask("HGETALL", self._wire.keys("gates"))
        books = (GateBook(gate.decode(), int(number)) for gate, number in used.items() if int(number))
        return tuple(sorted(books))

    async def inspect(self, request: InspectRequest) -> Inspection:
        """See the contract."""
        return await inspect(self._wire, request)

    async def dedicate(self, request: DedicateRequest) -> None:
        """See the contract."""
        before, is_done = await self._wire.run("dedicate", request.purpose)
        if not is_done:
            raise ValueError(not_dedicated(before.decode() or None))

    async def purpose(self, request: Request) -> str | None:  # noqa: ARG002 (everybody may know)
        """See the contract."""
        found = await self._wire.ask("HGET", self._wire.keys("meta"), "purpose")
        return None if found is None else found.decode()

    async def aclose(self) -> None:
        """See the contract."""
        await self._close()


def _start(cursor: str | None) -> Place | None:
    place = None if cursor is None else from_cursor(cursor)
    return None if place is None else (place.enqueued_at, place.id.bytes)


def _cursor(place: Place | None) -> str | None:
    return None if place is None else to_cursor(CursorPlace(place[0], UUID(bytes=place[1])))


def _erased(kept: Kept, word: str, now: Instant) -> Change:
    job: JobRecord = kept.job
    if not is_finished(job.state):
        job = stopped(job, State.CANCELLED, word, now)
    empty = erased(job)
    result = None if empty.result is None else empty.result
    return Change(kept, empty, body=to_body(empty), attempts=to_attempts(empty), result=result)


def _book(book: Book) -> StrandBook:
    tenant, queue, counts, _ = book
    numbers = dict(zip(_STATES, counts, strict=True))
    return StrandBook(queue, tenant, sum(numbers[state] for state in WAITING), numbers[State.RUNNING])


def _is_any(book: StrandBook) -> bool:
    return bool(book.waiting or book.running)
