"""`app.audit`: what operators did, sealed into a chain that `verify` checks (S60). Changes nothing.

Inside a tenant only that tenant's entries are visible; the chain concerns all of them (S9).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, TextIO, Unpack

from msgspec.structs import replace

from fairlane.app.admin.jobs import Page
from fairlane.app.admin.validation import number_of, within_page
from fairlane.app.ambient import scope_for, scope_of_all
from fairlane.app.client import Client
from fairlane.app.journals.reading import (
    JournalFilters,
    entries_request,
    is_matching,
    newest,
    number_at,
    oldest_first,
)
from fairlane.app.journals.verification import verify_chain
from fairlane.app.journals.views import (
    AuditEntry,
    AuditReport,
    audit_json,
    pending_view,
    sealed_view,
)
from fairlane.app.json_lines import JsonLines
from fairlane.model.instants import LAST_INSTANT
from fairlane.model.journal.errors import EntryNotFound
from fairlane.store.contract.journal import MAX_ENTRIES, EntriesRequest, PendingRequest

_UNSEALED: Final = "unsealed"
"""The word of a cursor that stands among the entries without a number."""

_ABOVE_ALL: Final = 2**64
"""A place above that of every entry: stores choose their places themselves, up to 64 bits."""


class Audit:
    """The audit of an application. Each method has an async twin whose name starts with `a`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def find(
        self, *, limit: int = 50, cursor: str | None = None, **filters: Unpack[JournalFilters]
    ) -> Page[AuditEntry]:
        """Return one page of the entries that match every filter, newest first.

        Entries that no duty has sealed yet come first; of these at most the oldest 1,000 are shown. For the
        next page pass the page's cursor with the same filters.
        """
        return self._client.portal.run(self.afind(limit=limit, cursor=cursor, **filters))

    async def afind(
        self, *, limit: int = 50, cursor: str | None = None, **filters: Unpack[JournalFilters]
    ) -> Page[AuditEntry]:
        """Return one page of the entries that match every filter, newest first; see `find`."""
        wanted, request = within_page("limit", limit), entries_request("audit", filters)
        if cursor is not None and not str(cursor).startswith(_UNSEALED):
            return await self._sealed(replace(request, after=number_at(cursor)), wanted, ())
        asked = PendingRequest(scope=request.scope, journal="audit", limit=MAX_ENTRIES)
        reply = await self._client.store.journal.pending(asked)
        before, end = _among_unsealed(cursor, reply.end.last)
        waiting = [one for one in reply.entries if one.place < before and is_matching(one, request)][::-1]
        if len(waiting) > wanted:
            shown = waiting[:wanted]
            return Page(tuple(map(pending_view, shown)), f"{_UNSEALED}-{shown[-1].place}-{end}")
        unsealed = tuple(map(pending_view, waiting))
        # Up to what was the end when the others had no number: none is shown twice, and none left out.
        return await self._sealed(replace(request, after=end + 1), wanted - len(waiting), unsealed)

    async def _sealed(
        self, request: EntriesRequest, wanted: int, before: tuple[AuditEntry, ...]
    ) -> Page[AuditEntry]:
        if not wanted:
            return Page(before, str(request.after))
        page = await newest(self._client.store, request, wanted)
        cursor = None if page.after is None else str(page.after)
        return Page((*before, *map(sealed_view, page.entries)), cursor)

    def get(self, number: int, /) -> AuditEntry:
        """Return the sealed entry with this number; `EntryNotFound` if it is not stored."""
        return self._client.portal.run(self.aget(number))

    async def aget(self, number: int, /) -> AuditEntry:
        """Return the sealed entry with this number; `EntryNotFound` if it is not stored."""
        wanted = number_of("number", number, LAST_INSTANT)
        request = EntriesRequest(scope=scope_for(None), journal="audit", after=wanted - 1, limit=1)
        page = await self._client.store.journal.entries(request)
        if not page.entries or page.entries[0].number != wanted:
            raise EntryNotFound(wanted)
        return sealed_view(page.entries[0])

    def verify(self) -> AuditReport:
        """Read the whole chain, and report entries that were changed, moved or removed.

        It needs the key with which the entries were sealed, `audit.key` of the configuration; `ConfigError`
        if that is missing or another. What was removed at the end of its time is no problem.
        """
        return self._client.portal.run(self.averify())

    async def averify(self) -> AuditReport:
        """Read the whole chain, and report entries that were changed, moved or removed; see `verify`."""
        scope_of_all("the chain of the audit has the entries of all tenants")
        return await verify_chain(self._client.store, self._client.settings.audit.key)

    def export(self, to: Path | str | TextIO, /, **filters: Unpack[JournalFilters]) -> int:
        """Write the entries that match as JSON lines, oldest first, and return how many.

        `to` is the path of a file, which is replaced, or a text file that is open. What looks secret is
        redacted. Entries that are not sealed yet come last.
        """
        return self._client.portal.run(self.aexport(to, **filters))

    async def aexport(self, to: Path | str | TextIO, /, **filters: Unpack[JournalFilters]) -> int:
        """Write the entries that match as JSON lines, oldest first, and return how many; see `export`."""
        request, store = entries_request("audit", filters), self._client.store
        asked = PendingRequest(scope=request.scope, journal="audit", limit=MAX_ENTRIES)
        reply = await store.journal.pending(asked)
        with JsonLines(to) as lines:
            async for entries in oldest_first(store, request):
                for one in entries:
                    if one.number <= reply.end.last:
                        lines.write(audit_json(sealed_view(one)))
            for waiting in reply.entries:
                if is_matching(waiting, request):
                    lines.write(audit_json(pending_view(waiting)))
            return lines.written


def _among_unsealed(cursor: str | None, last: int) -> tuple[int, int]:
    """Return before which place a page continues, and the number where the sealed entries ended then."""
    if cursor is None:
        return _ABOVE_ALL, last
    _, _, rest = cursor.partition("-")
    place, _, end = rest.partition("-")
    if not (place.isdecimal() and end.isdecimal() and cursor.isascii()):
        number_at(cursor)  # raises
    return int(place), int(end)
