"""`app.jobs`: find, count, explain, cancel and hurry jobs in any state.

Every call is scoped (S9): inside a tenant only that tenant's jobs are visible; outside, `tenant=` narrows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeVar, Unpack
from uuid import UUID

from msgspec.structs import replace

from fairlane.app.admin.counts import Counts, counts_from, counts_of, tally_all
from fairlane.app.admin.explain import Waiting, waiting_of
from fairlane.app.admin.paging import count_all
from fairlane.app.admin.validation import (
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
from fairlane.app.ambient import scope_for
from fairlane.app.client import Client
from fairlane.app.job import Job
from fairlane.model.errors import JobNotFound
from fairlane.model.identifiers import parse_id
from fairlane.model.instants import LAST_INSTANT
from fairlane.model.lifecycle.states import CancelReply, State
from fairlane.model.policy.overrides import Hold, Subject, SubjectKind
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
from fairlane.store.contract.request import MAX_PAGE_SIZE

T_co = TypeVar("T_co", covariant=True)

_STEP: Final = 200
"""Jobs that `each` reads at a time. Not more, since jobs come with their arguments and may be large."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T_co]):
    """One page of results. `cursor` None means the end; a page with a cursor may still be short or empty."""

    items: Sequence[T_co]
    cursor: str | None

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.items)


class Jobs:
    """The jobs of an application in every state. Each method has an async twin whose name starts with `a`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, id: UUID | str, /) -> Job[Any]:
        """Return one job; `JobNotFound` if it does not exist or belongs to another tenant's scope."""
        return self._client.portal.run(self.aget(id))

    async def aget(self, id: UUID | str, /) -> Job[Any]:
        """Return one job; `JobNotFound` if it does not exist or belongs to another tenant's scope."""
        return self._client.show(await self._client.aget(parse_id(id), scope_for(None)))

    def find(
        self,
        *,
        tenant: str | None = None,
        queue: str | None = None,
        task: str | None = None,
        state: State | Iterable[State] | None = None,
        correlation_id: str | None = None,
        created_by: str | None = None,
        tag: str | None = None,
        parent: UUID | str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Job[Any]]:
        """Return one page of the jobs that match every filter, most recently enqueued first.

        `since` (inclusive) and `until` (exclusive) bound the time of the enqueue. For the next page pass the
        page's cursor with the same filters. A job that matches all the time is returned exactly once.
        """
        return self._client.portal.run(
            self.afind(
                tenant=tenant,
                queue=queue,
                task=task,
                state=state,
                correlation_id=correlation_id,
                created_by=created_by,
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
        created_by: str | None = None,
        tag: str | None = None,
        parent: UUID | str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Job[Any]]:
        """Return one page of the jobs that match every filter; see `find`."""
        filters = filters_of(
            {
                "tenant": tenant,
                "queue": queue,
                "task": task,
                "state": state,
                "correlation_id": correlation_id,
                "created_by": created_by,
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
        """Iterate over all jobs that match the filters of `find`, or over the first `limit` of them.

        Most recently enqueued first. Pages are read as the iteration reaches them. A job that matches all the
        time is returned exactly once, whatever settles meanwhile.
        """
        left, request = self._walk(limit, filters)
        return self._each(left, request)

    def aeach(self, *, limit: int | None = None, **filters: Unpack[Filters]) -> AsyncIterator[Job[Any]]:
        """Iterate with `async for` over all jobs that match the filters of `find`; see `each`."""
        left, request = self._walk(limit, filters)
        return self._aeach(left, request)

    def _walk(self, limit: int | None, filters: Filters) -> tuple[int | None, FindRequest]:
        """Check the arguments now: a generator would do so only when its first job is requested."""
        most = None if limit is None else number_of("limit", limit, LAST_INSTANT)
        return most, FindRequest(**filters_of(filters), limit=_STEP)

    def _each(self, left: int | None, request: FindRequest) -> Iterator[Job[Any]]:
        async def aeach(request: FindRequest) -> FindReply:  # the portal's warning shows this name
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
        """Count the jobs that match the filters of `find`, by state; every state is present.

        Filters by tenant, queue and state alone are answered from counters, at once. Any other filter, and
        `because=True`, which also counts by reason, scans jobs: oldest first, 10,000 at a time, until all
        jobs of the tenant, the correlation id or the time range were scanned, or `most` of them. The reply
        says how many were scanned, whether that was all, and the `cursor` to continue with. Each job is
        counted once, in the state in which the scan met it.
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
        """Count the jobs that match the filters of `find`, by state; see `count`."""
        fields = filters_of(filters)
        bound = None if most is None else number_of("most", most, LAST_INSTANT)
        is_plain = {key for key, value in fields.items() if value} <= {"scope", "queue", "states"}
        if is_plain and not because and cursor is None:
            found = count_all(self._client.store, fields["scope"], fields.get("queue"))
            return counts_of([count async for count in found], fields["states"])
        request = TallyRequest(**fields, cursor=text_or_none("cursor", cursor))
        return counts_from(await tally_all(self._client.store, request, bound))

    def peek(self, queue: str, n: int = 10, *, tenant: str | None = None) -> Sequence[Job[Any]]:
        """Return the next n jobs in the order in which they would be claimed now; claims nothing (S65)."""
        return self._client.portal.run(self.apeek(queue, n, tenant=tenant))

    async def apeek(self, queue: str, n: int = 10, *, tenant: str | None = None) -> Sequence[Job[Any]]:
        """Return the next n jobs in the order in which they would be claimed now; claims nothing (S65)."""
        scope = scope_of(tenant)
        request = PeekRequest(scope=scope, queue=name_of("queue", queue), limit=within_page("n", n))
        return tuple(self._client.show(record) for record in await self._client.store.jobs.peek(request))

    def explain(self, id: UUID | str, /) -> Waiting:
        """Return why a job is not running, and what to do about it."""
        return self._client.portal.run(self.aexplain(id))

    async def aexplain(self, id: UUID | str, /) -> Waiting:
        """Return why a job is not running, and what to do about it."""
        wanted = parse_id(id)
        why = await self._client.store.jobs.explain(ExplainRequest(scope=scope_for(None), id=wanted))
        if why is None:
            raise JobNotFound(wanted)
        return waiting_of(why, await self._pause(why))

    async def _pause(self, why: Why) -> Hold | None:
        """Return the pause that holds a job. No scope is needed: who may see the job may see its pause."""
        if why.reason != "paused":
            return None
        kind, _, name = why.subject.partition(" ")
        subject = Subject(SubjectKind(kind), name)
        request = ReadRequest(scope=Scope.all(), subjects=(subject,))
        return (await self._client.store.policies.read(request))[subject].paused

    def cancel(
        self, *ids: UUID | str, reason: str = "", descendants: bool = False
    ) -> Mapping[UUID, CancelReply]:
        """Cancel waiting jobs and ask running ones to stop; the reply leaves out ids that were not found.

        With `descendants`, also the children of these jobs, their children, and so on. Danger: a job that is
        enqueued after its parent's children were looked up is not cancelled.
        """
        return self._client.portal.run(self.acancel(*ids, reason=reason, descendants=descendants))

    async def acancel(
        self, *ids: UUID | str, reason: str = "", descendants: bool = False
    ) -> Mapping[UUID, CancelReply]:
        """Cancel waiting jobs and ask running ones to stop; see `cancel`."""
        scope, why = scope_for(None), text_of("reason", reason)
        replies: dict[UUID, CancelReply] = {}
        ahead = list(dict.fromkeys(parse_id(id) for id in ids))
        while ahead:
            # The parent before its children are looked up: jobs it enqueues until it stops are found, too.
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
            request = FindRequest(scope=scope, parent_id=parent, limit=MAX_PAGE_SIZE, cursor=cursor)
            page = await self._client.store.jobs.find(request)
            found += [record.id for record in page.jobs]
            cursor = page.cursor
            if cursor is None:
                return found

    def run_now(self, *ids: UUID | str) -> int:
        """Make delayed jobs ready now; return how many of them were delayed (S53)."""
        return self._client.portal.run(self.arun_now(*ids))

    async def arun_now(self, *ids: UUID | str) -> int:
        """Make delayed jobs ready now; return how many of them were delayed (S53)."""
        wanted = tuple(dict.fromkeys(parse_id(id) for id in ids))
        request = RunNowRequest(scope=scope_for(None), ids=wanted)
        return len(await self._client.store.jobs.run_now(request))
