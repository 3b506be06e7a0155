"""`app.events`: what happened, in the order of its numbers (S76). Changes nothing.

Inside a tenant only that tenant's events are visible (S9).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Final, Unpack

from msgspec.structs import replace

from fairlane.app.admin.jobs import Page
from fairlane.app.admin.validation import within_page
from fairlane.app.client import Client
from fairlane.app.journals.reading import (
    EventFilters,
    Matches,
    entries_request,
    event_matcher,
    given_number,
    newest,
    number_at,
)
from fairlane.app.journals.views import EventView, event_view
from fairlane.model.instants import SECOND, Micros
from fairlane.store.contract.journal import MAX_ENTRIES, EntriesRequest, EntryPage, PendingRequest

_LOOK_EVERY: Final[Micros] = SECOND


class Events:
    """The events of an application. Each method has an async twin whose name starts with `a`.

    A duty numbers events within seconds after they happened, so a worker or `fairlane scheduler` must run.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def find(
        self, *, limit: int = 50, cursor: str | None = None, **filters: Unpack[EventFilters]
    ) -> Page[EventView]:
        """Return one page of the events that match every filter, newest first.

        For the next page pass the page's cursor with the same filters.
        """
        return self._client.portal.run(self.afind(limit=limit, cursor=cursor, **filters))

    async def afind(
        self, *, limit: int = 50, cursor: str | None = None, **filters: Unpack[EventFilters]
    ) -> Page[EventView]:
        """Return one page of the events that match every filter, newest first; see `find`."""
        wanted, request = within_page("limit", limit), entries_request("events", filters)
        request = replace(request, after=number_at(cursor))
        page = await newest(self._client.store, request, wanted, event_matcher(filters))
        return Page(tuple(map(event_view, page.entries)), None if page.after is None else str(page.after))

    def each(self, *, after: int = 0, **filters: Unpack[EventFilters]) -> Iterator[EventView]:
        """Iterate over the events after a number that match, in their order, up to the newest one."""
        return self._each(self._walk(after, filters), event_matcher(filters))

    def aeach(self, *, after: int = 0, **filters: Unpack[EventFilters]) -> AsyncIterator[EventView]:
        """Iterate with `async for` over the events after a number that match; see `each`."""
        return self._aeach(self._walk(after, filters), event_matcher(filters))

    def tail(self, *, after: int | None = None, **filters: Unpack[EventFilters]) -> Iterator[EventView]:
        """Iterate over the events after a number that match, and then wait for new ones, without end.

        Without `after` it begins with the next event. Pass the number of the last event that you have handled
        to go on where you stopped.
        """
        return self._tail(after, self._walk(after or 0, filters), event_matcher(filters))

    def atail(self, *, after: int | None = None, **filters: Unpack[EventFilters]) -> AsyncIterator[EventView]:
        """Iterate with `async for` over events, and then wait for new ones, without end; see `tail`."""
        return self._atail(after, self._walk(after or 0, filters), event_matcher(filters))

    def _walk(self, after: int, filters: EventFilters) -> EntriesRequest:
        """Check the arguments now: a generator would do so only when its first event is requested."""
        request = entries_request("events", filters)
        return replace(request, after=given_number("after", after), limit=MAX_ENTRIES)

    def _each(self, request: EntriesRequest, matches: Matches) -> Iterator[EventView]:
        async def aeach(request: EntriesRequest) -> EntryPage:  # the portal's warning shows this name
            return await self._client.store.journal.entries(request)

        while True:
            page = self._client.portal.run(aeach(request))
            yield from map(event_view, filter(matches, page.entries))
            if page.after is None or page.after == request.after:
                return
            request = replace(request, after=page.after)

    async def _aeach(self, request: EntriesRequest, matches: Matches) -> AsyncIterator[EventView]:
        while True:
            page = await self._client.store.journal.entries(request)
            for one in filter(matches, page.entries):
                yield event_view(one)
            if page.after is None or page.after == request.after:
                return
            request = replace(request, after=page.after)

    def _tail(self, after: int | None, request: EntriesRequest, matches: Matches) -> Iterator[EventView]:
        async def atail(request: EntriesRequest) -> EntryPage:  # as above
            return await self._next(request)

        if after is None:
            request = replace(request, after=self._client.portal.run(self._end(request)))
        while True:
            page = self._client.portal.run(atail(request))
            yield from map(event_view, filter(matches, page.entries))
            request = replace(request, after=page.after or request.after)

    async def _atail(
        self, after: int | None, request: EntriesRequest, matches: Matches
    ) -> AsyncIterator[EventView]:
        if after is None:
            request = replace(request, after=await self._end(request))
        while True:
            page = await self._next(request)
            for one in filter(matches, page.entries):
                yield event_view(one)
            request = replace(request, after=page.after or request.after)

    async def _next(self, request: EntriesRequest) -> EntryPage:
        """Return the next events; wait until there are some."""
        while True:
            page = await self._client.store.journal.entries(request)
            if page.entries:
                return page
            request = replace(request, after=page.after or request.after)
            await self._client.clock.wait(_LOOK_EVERY)

    async def _end(self, request: EntriesRequest) -> int:
        """Return the number of the newest event."""
        asked = PendingRequest(scope=request.scope, journal="events", limit=0)
        return (await self._client.store.journal.pending(asked)).end.last
