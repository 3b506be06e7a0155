"""`app.jobs`: look at jobs in whatever state they are, cancel them, run them now.

Every call is scoped (S9): inside a tenant only that tenant's jobs exist, outside `tenant=` narrows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeVar, Unpack
from uuid import UUID

from msgspec.structs import replace

from fairlane.app.ambient import scope_for
from fairlane.app.asked import (
    Filters,
    cursor_of,
    filters_of,
    name_of,
    number_of,
    scope_of,
    text_of,
    text_or_none,
    within_page,
)
from fairlane.app.client import Client
from fairlane.app.counting import count_all
from fairlane.app.counts import Counts, counts_from, counts_of, tally_all
from fairlane.app.job import Job
from fairlane.app.waiting import Waiting, waiting_of
from fairlane.model.errors import JobNotFound
from fairlane.model.identifiers import parse_id
from fairlane.model.instants import LAST_INSTANT
from fairlane.model.layers import Hold, Kind, Subject
from fairlane.model.lifecycle import CancelReply, State
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import (
    ExplainRequest,
    FindReply,
    FindRequest,
    PeekRequest,
    RunNowRequest,
    StopRequest,
    TallyRequest,
    Why,
)
from fairlane.store.contract.policies import ReadRequest
from fairlane.store.contract.request import PAGE_MOST

T_co = TypeVar("T_co", covariant=True)

_STEP: Final = 200
"""How many jobs `each` reads at a time: with their arguments they may be large."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T_co]):
    """Some of what was found. No cursor means the end; a page may be short, even empty, with a cursor."""

    items: Sequence[T_co]
    cursor: str | None

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.items)


class Jobs:
    """Jobs in all states and homes. Each method has an async twin with an `a` in front."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, id: UUID | str, /) -> Job[Any]:
        """Give one job; `JobNotFound` if there is none, or none that can be seen from here."""
        return self._client.portal.run(self.aget(id))

    async def aget(self, id: UUID | str, /) -> Job[Any]:
        """Give one job; `JobNotFound` if there is none, or none that can be seen from here."""
        return self._client.show(await self._client.aget(parse_id(id), scope_for(None)))

    def find(
        self,
        *,
        tenant: str | None = None,
        queue: str | None = None,
        task: str | None = None,
        state: State | Iterable[State] | None = None,
        correlation_id: str | None = None,
        tag: str | None = None,
        parent: UUID | str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Job[Any]]:
        """Give a page of the jobs that meet every filter, newest enqueue first.

        Times are those of the enqueue, from `since` on and before `until`. To go on, pass the page's cursor
        with the same filters: no job that matches throughout is met twice or missed.
        """
        return self._client.portal.run(
            self.afind(
                tenant=tenant,
                queue=queue,
                task=task,
                state=state,
                correlation_id=correlation_id,
                tag=tag,
                parent=parent,
                since=since,
                until=until,
                limit=limit,
                cursor=cursor,
            )
        )

    async def afind(
        self,
        *,
        tenant: str | None = None,
        queue: str | None = None,
        task: str | None = None,
        state: State | Iterable[State] | None = None,
        correlation_id: str | None = None,
        tag: str | None = None,
        parent: UUID | str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Job[Any]]:
        """Give a page of the jobs that meet every filter, newest enqueue first; see `find`."""
        filters = filters_of(
            {
                "tenant": tenant,
                "queue": queue,
                "task": task,
                "state": state,
                "correlation_id": correlation_id,
                "tag": tag,
                "parent": parent,
                "since": since,
                "until": until,
            }
        )
        request = FindRequest(**filters, limit=within_page("limit", limit), cursor=cursor_of(cursor))
        reply = await self._client.store.jobs.find(request)
        return Page(tuple(self._client.show(record) for record in reply.jobs), reply.cursor)

    def each(self, *, limit: int | None = None, **filters: Unpack[Filters]) -> Iterator[Job[Any]]:
        """Return every job that meets the filters of `find`, newest enqueue first, or the first `limit`.

        Goes on by itself, a page at a time: what is not asked for is not read. A job that matches throughout
        is given exactly once, however jobs settle meanwhile.
        """
        left, request = self._walk(limit, filters)
        return self._each(left, request)

    def aeach(self, *, limit: int | None = None, **filters: Unpack[Filters]) -> AsyncIterator[Job[Any]]:
        """Return every job that meets the filters of `find`, newest first, for `async for`; see `each`."""
        left, request = self._walk(limit, filters)
        return self._aeach(left, request)

    def _walk(self, limit: int | None, filters: Filters) -> tuple[int | None, FindRequest]:
        """Check what is asked for, here and now: a generator would do so when it is first asked for a job."""
        most = None if limit is None else number_of("limit", limit, LAST_INSTANT)
        return most, FindRequest(**filters_of(filters), limit=_STEP)

    def _each(self, left: int | None, request: FindRequest) -> Iterator[Job[Any]]:
        async def aeach(request: FindRequest) -> FindReply:  # by this name a warning speaks of it
            return await self._client.store.jobs.find(request)

        while True:
            request = replace(request, limit=_STEP if left is None else min(_STEP, left))
            reply = self._client.portal.run(aeach(request))
            yield from map(self._client.show, reply.jobs)
            left = None if left is None else left - len(reply.jobs)
            if reply.cursor is None or left == 0:
                return
            request = replace(request, cursor=reply.cursor)

    async def _aeach(self, left: int | None, request: FindRequest) -> AsyncIterator[Job[Any]]:
        while True:
            request = replace(request, limit=_STEP if left is None else min(_STEP, left))
            reply = await self._client.store.jobs.find(request)
            for record in reply.jobs:
                yield self._client.show(record)
            left = None if left is None else left - len(reply.jobs)
            if reply.cursor is None or left == 0:
                return
            request = replace(request, cursor=reply.cursor)

    def count(
        self,
        *,
        because: bool = False,
        most: int | None = None,
        cursor: str | None = None,
        **filters: Unpack[Filters],
    ) -> Counts:
        """Count the jobs that meet the filters of `find`, by state; every state is there.

        By tenant, queue and state alone counters answer, at once. Anything else, and `because`, which counts
        the jobs of a state apart by their reason, looks at jobs, oldest first and 10,000 at a time, until all
        of the tenant, the correlation id or the time range were looked at, or `most` of them: the reply says
        at how many, whether that was all, and where to go on with `cursor` if not. Each job is counted once,
        in the state in which it was met.
        """
        return self._client.portal.run(self.acount(because=because, most=most, cursor=cursor, **filters))

    async def acount(
        self,
        *,
        because: bool = False,
        most: int | None = None,
        cursor: str | None = None,
        **filters: Unpack[Filters],
    ) -> Counts:
        """Count the jobs that meet the filters of `find`, by state; see `count`."""
        asked = filters_of(filters)
        bound = None if most is None else number_of("most", most, LAST_INSTANT)
        is_plain = {key for key, value in asked.items() if value} <= {"scope", "queue", "states"}
        if is_plain and not because and cursor is None:
            found = count_all(self._client.store, asked["scope"], asked.get("queue"))
            return counts_of([count async for count in found], asked["states"])
        request = TallyRequest(**asked, cursor=text_or_none("cursor", cursor))
        return counts_from(await tally_all(self._client.store, request, bound))

    def peek(self, queue: str, n: int = 10, *, tenant: str | None = None) -> Sequence[Job[Any]]:
        """Give the next n jobs in the order in which they would be claimed now, without taking them (S65)."""
        return self._client.portal.run(self.apeek(queue, n, tenant=tenant))

    async def apeek(self, queue: str, n: int = 10, *, tenant: str | None = None) -> Sequence[Job[Any]]:
        """Give the next n jobs in the order in which they would be claimed now, without taking them (S65)."""
        scope = scope_of(tenant)
        request = PeekRequest(scope=scope, queue=name_of("queue", queue), most=within_page("n", n))
        return tuple(self._client.show(record) for record in await self._client.store.jobs.peek(request))

    def explain(self, id: UUID | str, /) -> Waiting:
        """Say why a job is not running, and what to do about it."""
        return self._client.portal.run(self.aexplain(id))

    async def aexplain(self, id: UUID | str, /) -> Waiting:
        """Say why a job is not running, and what to do about it."""
        wanted = parse_id(id)
        why = await self._client.store.jobs.explain(ExplainRequest(scope=scope_for(None), id=wanted))
        if why is None:
            raise JobNotFound(wanted)
        return waiting_of(why, await self._pause(why))

    async def _pause(self, why: Why) -> Hold | None:
        """Look up who has paused what holds a job; whoever may see the job may see that."""
        if why.reason != "paused":
            return None
        kind, _, name = why.subject.partition(" ")
        subject = Subject(Kind(kind), name)
        request = ReadRequest(scope=Scope.all(), subjects=(subject,))
        return (await self._client.store.policies.read(request))[subject].paused

    def cancel(
        self, *ids: UUID | str, reason: str = "", descendants: bool = False
    ) -> Mapping[UUID, CancelReply]:
        """Cancel jobs that wait, ask those that run to stop; ids that are not found are left out.

        With `descendants`, also the jobs whose parent is cancelled here, theirs, and so on: those that exist
        when they are looked for.
        """
        return self._client.portal.run(self.acancel(*ids, reason=reason, descendants=descendants))

    async def acancel(
        self, *ids: UUID | str, reason: str = "", descendants: bool = False
    ) -> Mapping[UUID, CancelReply]:
        """Cancel jobs that wait, ask those that run to stop; see `cancel`."""
        scope, why = scope_for(None), text_of("reason", reason)
        replies: dict[UUID, CancelReply] = {}
        ahead = list(dict.fromkeys(parse_id(id) for id in ids))
        while ahead:
            # A parent first, then its children: what it enqueues while it still runs is then found too.
            request = StopRequest(scope=scope, ids=tuple(ahead), reason=why)
            replies.update(await self._client.store.jobs.cancel(request))
            children = (
                [child for parent in ahead for child in await self._children(parent, scope)]
                if descendants
                else []
            )
            ahead = [child for child in dict.fromkeys(children) if child not in replies]
        return replies

    async def _children(self, parent: UUID, scope: Scope) -> list[UUID]:
        found: list[UUID] = []
        cursor: str | None = None
        while True:
            request = FindRequest(scope=scope, parent_id=parent, limit=PAGE_MOST, cursor=cursor)
            page = await self._client.store.jobs.find(request)
            found += [record.id for record in page.jobs]
            cursor = page.cursor
            if cursor is None:
                return found

    def run_now(self, *ids: UUID | str) -> int:
        """Make delayed jobs ready at once; the answer says how many were delayed (S53)."""
        return self._client.portal.run(self.arun_now(*ids))

    async def arun_now(self, *ids: UUID | str) -> int:
        """Make delayed jobs ready at once; the answer says how many were delayed (S53)."""
        wanted = tuple(dict.fromkeys(parse_id(id) for id in ids))
        request = RunNowRequest(scope=scope_for(None), ids=wanted)
        return len(await self._client.store.jobs.run_now(request))
