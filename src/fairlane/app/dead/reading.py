"""The part of `app.dead` that reads: find, count, group, export. Changes nothing.

Every call is scoped (S9): inside a tenant only that tenant's dead letters are visible.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TextIO, Unpack
from uuid import UUID

from msgspec.structs import replace

from fairlane.app.admin.jobs import Page
from fairlane.app.admin.validation import cursor_of, number_of, within_page
from fairlane.app.ambient import scope_for
from fairlane.app.client import Client
from fairlane.app.dead.causes import count_reviews, groups_of, statistics_of
from fairlane.app.dead.filters import DeadFilters, dead_filters_of
from fairlane.app.dead.letter_json import letter_json
from fairlane.app.dead.open_breakers import with_breakers
from fairlane.app.dead.views import DeadGroup, DeadLetterView, DeadStatistics, letter_view
from fairlane.app.json_lines import JsonLines
from fairlane.app.redaction import Redactor, secret_names
from fairlane.model.errors import WrongState
from fairlane.model.identifiers import parse_id
from fairlane.model.instants import LAST_INSTANT
from fairlane.model.review import Review
from fairlane.model.scope import Scope
from fairlane.store.contract.dead import (
    DeadGetRequest,
    DeadLetter,
    DeadPage,
    DeadRequest,
    DeadTallyRequest,
)

STEP: Final = 200
"""Letters that are read at a time. Not more, since they come with the arguments of their jobs."""

_MOST_GROUPS: Final = 1_000


class DeadReading:
    """Dead letters, read. Each method has an async twin whose name starts with `a`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, id: UUID | str, /) -> DeadLetterView:
        """Return one dead letter; `JobNotFound` if there is no such job, `WrongState` if it is not dead."""
        return self._client.portal.run(self.aget(id))

    async def aget(self, id: UUID | str, /) -> DeadLetterView:
        """Return one dead letter; see `get`."""
        return self._view(await self._letter(parse_id(id), scope_for(None)))

    def find(
        self, *, limit: int = 50, cursor: str | None = None, **filters: Unpack[DeadFilters]
    ) -> Page[DeadLetterView]:
        """Return one page of the dead letters that match every filter, latest death first.

        `since` (inclusive) and `until` (exclusive) bound the time of death. For the next page pass the page's
        cursor with the same filters.
        """
        return self._client.portal.run(self.afind(limit=limit, cursor=cursor, **filters))

    async def afind(
        self, *, limit: int = 50, cursor: str | None = None, **filters: Unpack[DeadFilters]
    ) -> Page[DeadLetterView]:
        """Return one page of the dead letters that match every filter; see `find`."""
        fields = dead_filters_of(filters)
        request = DeadRequest(**fields, limit=within_page("limit", limit), cursor=cursor_of(cursor))
        page = await self._client.store.dead.find(request)
        return Page(tuple(map(self._view, page.letters)), page.cursor)

    def each(self, *, limit: int | None = None, **filters: Unpack[DeadFilters]) -> Iterator[DeadLetterView]:
        """Iterate over all dead letters that match the filters of `find`, or over the first `limit`.

        Latest death first. Pages are read as the iteration reaches them; letters of jobs that die meanwhile
        are left out.
        """
        left, request = self._walk(limit, filters)
        return self._each(left, request)

    def aeach(
        self, *, limit: int | None = None, **filters: Unpack[DeadFilters]
    ) -> AsyncIterator[DeadLetterView]:
        """Iterate with `async for` over all dead letters that match the filters of `find`; see `each`."""
        left, request = self._walk(limit, filters)
        return self._aeach(left, request)

    def _walk(self, limit: int | None, filters: DeadFilters) -> tuple[int | None, DeadRequest]:
        """Check the arguments now: a generator would do so only when its first letter is requested."""
        most = None if limit is None else number_of("limit", limit, LAST_INSTANT)
        return most, DeadRequest(**dead_filters_of(filters), limit=STEP)

    def _each(self, left: int | None, request: DeadRequest) -> Iterator[DeadLetterView]:
        async def aeach(request: DeadRequest) -> DeadPage:  # the portal's warning shows this name
            return await self._client.store.dead.find(request)

        while True:
            request = replace(request, limit=STEP if left is None else min(STEP, left))
            page = self._client.portal.run(aeach(request))
            yield from map(self._view, page.letters)
            left = None if left is None else left - len(page.letters)
            if page.cursor is None or left == 0:
                return
            request = replace(request, cursor=page.cursor)

    async def _aeach(self, left: int | None, request: DeadRequest) -> AsyncIterator[DeadLetterView]:
        while True:
            request = replace(request, limit=STEP if left is None else min(STEP, left))
            page = await self._client.store.dead.find(request)
            for letter in page.letters:
                yield self._view(letter)
            left = None if left is None else left - len(page.letters)
            if page.cursor is None or left == 0:
                return
            request = replace(request, cursor=page.cursor)

    def count(self, **filters: Unpack[DeadFilters]) -> Mapping[Review, int]:
        """Count the dead letters that match the filters of `find`, by review; every review is present."""
        return self._client.portal.run(self.acount(**filters))

    async def acount(self, **filters: Unpack[DeadFilters]) -> Mapping[Review, int]:
        """Count the dead letters that match the filters of `find`, by review; see `count`."""
        request = DeadTallyRequest(**dead_filters_of(filters))
        return await count_reviews(self._client.store, request)

    def groups(self, *, limit: int = 50, **filters: Unpack[DeadFilters]) -> Sequence[DeadGroup]:
        """Group the dead letters that match by cause: task, class, type, folded message, innermost frame.

        The group with the most letters comes first. `find(fingerprint=…)` returns the letters of a group. One
        whose task has a breaker that is not closed says so.
        """
        return self._client.portal.run(self.agroups(limit=limit, **filters))

    async def agroups(self, *, limit: int = 50, **filters: Unpack[DeadFilters]) -> Sequence[DeadGroup]:
        """Group the dead letters that match by cause; see `groups`."""
        most = number_of("limit", limit, _MOST_GROUPS)
        found = await groups_of(self._client, DeadTallyRequest(**dead_filters_of(filters)), most)
        return await with_breakers(self._client, found)

    def statistics(self, **filters: Unpack[DeadFilters]) -> DeadStatistics:
        """Count the dead letters that match by queue, by task, by tenant, by error class and by review."""
        return self._client.portal.run(self.astatistics(**filters))

    async def astatistics(self, **filters: Unpack[DeadFilters]) -> DeadStatistics:
        """Count the dead letters that match by each of their properties; see `statistics`."""
        request = DeadTallyRequest(**dead_filters_of(filters))
        return await statistics_of(self._client.store, request)

    def export(self, to: Path | str | TextIO, /, **filters: Unpack[DeadFilters]) -> int:
        """Write the dead letters that match as JSON lines, and return how many: arguments, attempts, review.

        `to` is the path of a file, which is replaced, or a text file that is open. What looks secret is
        redacted.
        """
        return self._client.portal.run(self.aexport(to, **filters))

    async def aexport(self, to: Path | str | TextIO, /, **filters: Unpack[DeadFilters]) -> int:
        """Write the dead letters that match as JSON lines, and return how many; see `export`."""
        request = DeadRequest(**dead_filters_of(filters), limit=STEP)
        with JsonLines(to) as lines:
            while True:
                page = await self._client.store.dead.find(request)
                tasks = {letter.job.task for letter in page.letters}
                names = await secret_names(self._client, tasks, request.scope)
                for letter in page.letters:
                    redactor = Redactor(reveals=False, names=names[letter.job.task])
                    lines.write(letter_json(letter, self._view(letter), redactor))
                if page.cursor is None:
                    return lines.written
                request = replace(request, cursor=page.cursor)

    # ── for those that inherit this ───────────────────────────────────────────

    def _view(self, letter: DeadLetter) -> DeadLetterView:
        return letter_view(letter, self._client.show(letter.job))

    async def _letter(self, id: UUID, scope: Scope) -> DeadLetter:
        """Return a stored letter, or raise why there is none."""
        letter = await self._client.store.dead.get(DeadGetRequest(scope=scope, id=id))
        if letter is not None:
            return letter
        job = await self._client.aget(id, scope)
        what, todo = "only a dead job has a dead letter", "look at it with app.jobs.get(id)"
        raise WrongState(id, job.state.value, what, todo)
