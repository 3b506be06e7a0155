"""The journal facet of the oracle."""

from __future__ import annotations

import msgspec

from fairlane.store.contract.journal import (
    AppendRequest,
    EntriesRequest,
    EntryPage,
    JournalEnd,
    NumberRequest,
    PendingReply,
    PendingRequest,
    TrimRequest,
    check_append,
    check_numbers,
    check_trim,
)
from fairlane.store.contract.request import MAX_ROWS_READ, check_page, check_serves_all
from tests.oracle.books import JournalBook
from tests.oracle.core import Core


class OracleJournal:
    """What operators did, and what happened."""

    def __init__(self, core: Core) -> None:
        """Share the state with the other facets."""
        self._core = core

    async def append(self, request: AppendRequest) -> None:
        check_append(request)
        self._core.append(request.journal, *request.entries)

    async def pending(self, request: PendingRequest) -> PendingReply:
        check_page(request.limit)
        book, tenant = self._core.books.journals[request.journal], request.scope.tenant
        mine = [one for one in book.pending if tenant in {None, one.entry.tenant}]
        end = _end(book)
        if tenant is not None:
            end = msgspec.structs.replace(end, memory=b"")
        return PendingReply(tuple(mine[: request.limit]), end, self._core.now())

    async def number(self, request: NumberRequest) -> bool:
        check_serves_all(request)
        book = self._core.books.journals[request.journal]
        places = {one.place for one in book.pending}
        if request.revision != book.revision:
            return False
        check_numbers(request, book.last)
        if not places.issuperset(request.taken) or len(set(request.taken)) < len(request.taken):
            return False
        book.pending = [one for one in book.pending if one.place not in request.taken]
        book.entries += request.entries
        book.last += len(request.entries)
        book.revision, book.memory = book.revision + 1, request.memory
        return True

    async def entries(self, request: EntriesRequest) -> EntryPage:
        check_page(request.limit)
        book = self._core.books.journals[request.journal]
        rows = book.entries
        if request.backwards:
            rows = [one for one in rows[::-1] if not request.after or one.number < request.after]
        else:
            rows = [one for one in rows if one.number > request.after]
        found = []
        for read, row in enumerate(rows, 1):
            if (
                request.scope.tenant in {None, row.entry.tenant}
                and (not request.kinds or row.entry.kind in request.kinds)
                and request.subject in {None, row.entry.subject}
                and (request.since is None or row.at >= request.since)
                and (request.until is None or row.at < request.until)
            ):
                found.append(row)
            if (len(found) == request.limit or read == MAX_ROWS_READ) and read < len(rows):
                return EntryPage(tuple(found), row.number)
        is_over = request.backwards or not book.last
        return EntryPage(tuple(found), None if is_over else max(request.after, book.last))

    async def trim(self, request: TrimRequest) -> bool:
        check_serves_all(request)
        book = self._core.books.journals[request.journal]
        if request.revision != book.revision:
            return False
        check_trim(request, book.last)
        old = [one for one in book.entries if one.number <= request.up_to]
        book.entries = book.entries[len(old[: request.limit]) :]
        book.revision, book.memory = book.revision + 1, request.memory
        return True


def _end(book: JournalBook) -> JournalEnd:
    first = book.entries[0].number if book.entries else 0
    return JournalEnd(book.revision, first, book.last, book.memory)
