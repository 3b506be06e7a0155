"""The journal facet: what operators did, and what happened (S60, S76).

A journal is two streams: entries without a number in the order of their coming, and numbered ones.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from fairlane.model.journal.entries import Entry, JournalName, PendingEntry
from fairlane.store.contract.journal import (
    MAX_ENTRIES,
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
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.records.entries import (
    encode_entries,
    encode_numbered,
    read_entry,
    read_pending,
    to_stream_id,
)

_PAGE: Final = 500
"""How many entries one command reads."""

_LAST_NUMBER: Final = 2**63
"""After every number that an entry can have."""


class RedisJournal:
    """Both journals, as they are stored."""

    def __init__(self, client: RedisClient) -> None:
        """Share the connections with the other facets."""
        self._client = client

    async def append(self, request: AppendRequest) -> None:
        check_append(request)
        if request.entries:
            await self._client.run("journal/append", encode_entries(request.journal, request.entries))

    async def pending(self, request: PendingRequest) -> PendingReply:
        check_page(request.limit)
        tenant = request.scope.tenant
        size = request.limit if tenant is None or not request.limit else _PAGE
        found: list[PendingEntry] = []
        place, read = b"", 0
        while True:
            reply = await self._client.run("journal/pending", request.journal, place, size)
            now, revision, first, last, memory, stored = reply
            page = [read_pending(*one) for one in zip(stored[::2], stored[1::2], strict=True)]
            found += [one for one in page if tenant in {None, one.entry.tenant}]
            read += size
            if len(page) < size or len(found) >= request.limit or read >= MAX_ROWS_READ:
                break
            place = stored[-2]
        end = JournalEnd(revision, first, last, memory if tenant is None else b"")
        return PendingReply(tuple(found[: request.limit]), end, now)

    async def number(self, request: NumberRequest) -> bool:
        check_serves_all(request)
        numbers = [entry.number for entry in request.entries]
        first = numbers[0] if numbers else 0
        # A first number of 0 follows no last one: the script then refuses what has gaps.
        is_contiguous = numbers == list(range(first, first + len(numbers)))
        is_done, last = await self._client.run(
            "journal/number",
            request.journal,
            request.revision,
            first if is_contiguous else 0,
            request.memory,
            len(request.taken),
            *map(to_stream_id, sorted(request.taken)),
            *map(encode_numbered, request.entries),
        )
        if last >= 0:
            check_numbers(request, last)
        return bool(is_done)

    async def entries(self, request: EntriesRequest) -> EntryPage:
        check_page(request.limit)
        # First: what is numbered while the entries are read is read by the next call.
        last = await self._client.ask("HGET", self._client.keys("journal_ends", request.journal), "last")
        found: list[Entry] = []
        read, after = 0, request.after
        async for entry in self._read(request.journal, request.after, is_up=not request.backwards):
            if len(found) == request.limit or read == MAX_ROWS_READ:
                return EntryPage(tuple(found), after)
            read, after = read + 1, entry.number
            if _matches(entry, request):
                found.append(entry)
        last = int(last or 0)  # 0 as well if only the memory was stored
        is_over = request.backwards or not last
        return EntryPage(tuple(found), None if is_over else max(after, last))

    async def trim(self, request: TrimRequest) -> bool:
        check_serves_all(request)
        limit = min(request.limit, MAX_ENTRIES)
        values = (request.revision, request.up_to, limit, request.memory)
        is_done, last = await self._client.run("journal/trim", request.journal, *values)
        if last >= 0:
            check_trim(request, last)
        return bool(is_done)

    async def _read(self, journal: JournalName, after: int, *, is_up: bool) -> AsyncIterator[Entry]:
        """Yield numbered entries after a number, or backwards before it; a page a command."""
        key = self._client.keys("entries", journal)
        place = f"({min(after, _LAST_NUMBER)}-0" if after else "-" if is_up else "+"
        while True:
            command = ("XRANGE", key, place, "+") if is_up else ("XREVRANGE", key, place, "-")
            page = await self._client.ask(*command, "COUNT", _PAGE)
            for id, (_, stored) in page:
                yield read_entry(id, stored)
            if len(page) < _PAGE:
                return
            place = f"({page[-1][0].decode()}"


def _matches(entry: Entry, request: EntriesRequest) -> bool:
    one = entry.entry
    return all(
        (
            request.scope.tenant in {None, one.tenant},
            not request.kinds or one.kind in request.kinds,
            request.subject in {None, one.subject},
            request.since is None or entry.at >= request.since,
            request.until is None or entry.at < request.until,
        )
    )
