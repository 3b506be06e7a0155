"""`app.jobs`: find, count and explain jobs in any state. What changes them is in `job_steering`, `job_bulk`.

Every call is scoped (S9): inside a tenant only that tenant's jobs are visible; outside, `tenant=` narrows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeVar, Unpack
from uuid import UUID

from msgspec.structs import replace

from fairlane.app.admin.counts import Counts, counts_from, counts_of, tally_all
from fairlane.app.admin.explain import Waiting, waiting_of
from fairlane.app.admin.failures import MAX_LOOKED_AT, FailureReport, report_failures
from fairlane.app.admin.job_bulk import JobBulk
from fairlane.app.admin.job_search import search_of, search_page
from fairlane.app.admin.job_trace import Trace, trace_of
from fairlane.app.admin.paging import count_all
from fairlane.app.admin.validation import (
    Filters,
    FindFilters,
    age_of,
    begin_of,
    cursor_of,
    filters_of,
    find_filters_of,
    name_of,
    number_of,
    scope_of,
    text_or_none,
    within_page,
)
from fairlane.app.ambient import scope_for
from fairlane.app.job import Job
from fairlane.model.errors import JobNotFound
from fairlane.model.identifiers import parse_id
from fairlane.model.instants import LAST_INSTANT, Duration
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.overrides import Hold, Subject, SubjectKind
from fairlane.model.schedule.origin import scheduled_slot
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import (
    ExplainRequest,
    FindReply,
    FindRequest,
    PeekRequest,
    Scalar,
    TallyRequest,
    Why,
)
from fairlane.store.contract.policies import ReadRequest

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


class Jobs(JobBulk):
    """The jobs of an application in every state. Each method has an async twin whose name starts with `a`."""

    def get(self, id: UUID | str, /) -> Job[Any]:
        """Return one job; `JobNotFound` if it does not exist or belongs to another tenant's scope."""
        return self._client.portal.run(self.aget(id))

    async def aget(self, id: UUID | str, /) -> Job[Any]:
        """Return one job; `JobNotFound` if it does not exist or belongs to another tenant's scope."""
        return self._client.show(await self._client.aget(parse_id(id), scope_for(None)))

    def trace(self, id: UUID | str, /) -> Trace:
        """Return what led to a job and what came of it: its ancestors, and all jobs of their correlation ids.

        At most 1,000 jobs of a correlation id are read, the newest; the trace says if there are more.
        """
        return self._client.portal.run(self.atrace(id))

    async def atrace(self, id: UUID | str, /) -> Trace:
        """Return what led to a job and what came of it; see `trace`."""
        return await trace_of(self._client, scope_for(None), parse_id(id))

    def find(
        self,
        query: str = "",
        /,
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
        metadata: Mapping[str, Scalar] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Job[Any]]:
        """Return one page of the jobs that match the query and every filter, most recently enqueued first.

        The query is a text such as `state:dead task:mail.* -tag:vip`; `QueryError` points at what cannot be
        understood. One call reads at most 10,000 jobs, so a page may be short or empty with a cursor.
        `since` (inclusive) and `until` (exclusive) bound the time of the enqueue. `metadata` compares plain
        values at dotted paths, by type too: `{"import.page": 7}`. For the next page pass the page's cursor
        with the same filters. A job that matches all the time is returned exactly once.
        """
        return self._client.portal.run(
            self.afind(
                query,
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
                metadata=metadata,
                limit=limit,
                cursor=cursor,
            )
        )

    async def afind(
        self,
        query: str = "",
        /,
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
        metadata: Mapping[str, Scalar] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Job[Any]]:
        """Return one page of the jobs that match the query and every filter; see `find`."""
        filters: FindFilters = {
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
            "metadata": metadata,
        }
        most, start, store = within_page("limit", limit), cursor_of(cursor), self._client.store
        if query:
            reply = await search_page(store, await search_of(store, query, filters), most, start)
        else:
            reply = await store.jobs.find(FindRequest(**find_filters_of(filters), limit=most, cursor=start))
        return Page(tuple(self._client.show(record) for record in reply.jobs), reply.cursor)

    def each(self, *, limit: int | None = None, **filters: Unpack[FindFilters]) -> Iterator[Job[Any]]:
        """Iterate over all jobs that match the filters of `find`, or over the first `limit` of them.

        Most recently enqueued first. Pages are read as the iteration reaches them. A job that matches all the
        time is returned exactly once, whatever settles meanwhile.
        """
        left, request = self._walk(limit, filters)
        return self._each(left, request)

    def aeach(self, *, limit: int | None = None, **filters: Unpack[FindFilters]) -> AsyncIterator[Job[Any]]:
        """Iterate with `async for` over all jobs that match the filters of `find`; see `each`."""
        left, request = self._walk(limit, filters)
        return self._aeach(left, request)

    def _walk(self, limit: int | None, filters: FindFilters) -> tuple[int | None, FindRequest]:
        """Check the arguments now: a generator would do so only when its first job is requested."""
        most = None if limit is None else number_of("limit", limit, LAST_INSTANT)
        return most, FindRequest(**find_filters_of(filters), limit=_STEP)

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

    def failures(
        self,
        *,
        since: datetime | timedelta,
        tenant: str | None = None,
        task: str | None = None,
        most: int = MAX_LOOKED_AT,
    ) -> FailureReport:
        """Return the failed attempts by task since a time, or since so long ago.

        Reads dead letters and unfinished jobs, at most `most` of each; the reply says whether that was all.
        Jobs that succeeded after a retry are not counted.
        """
        return self._client.portal.run(self.afailures(since=since, tenant=tenant, task=task, most=most))

    async def afailures(
        self,
        *,
        since: datetime | timedelta,
        tenant: str | None = None,
        task: str | None = None,
        most: int = MAX_LOOKED_AT,
    ) -> FailureReport:
        """Return the failed attempts by task since a time, or since so long ago; see `failures`."""
        scope, bound = scope_of(tenant), number_of("most", most, LAST_INSTANT)
        named = None if task is None else name_of("task", task)
        begin = await begin_of(self._client.store, since)
        return await report_failures(self._client.store, scope, begin, named, bound)

    def stuck(
        self,
        age: Duration,
        *,
        tenant: str | None = None,
        queue: str | None = None,
        task: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Job[Any]]:
        """Return jobs whose attempt has been running for longer than `age`, most recently enqueued first."""
        return self._client.portal.run(
            self.astuck(age, tenant=tenant, queue=queue, task=task, limit=limit, cursor=cursor)
        )

    async def astuck(
        self,
        age: Duration,
        *,
        tenant: str | None = None,
        queue: str | None = None,
        task: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Job[Any]]:
        """Return jobs whose attempt has been running for longer than `age`; see `stuck`."""
        longest, wanted = age_of("age", age), within_page("limit", limit)
        filters = filters_of({"tenant": tenant, "queue": queue, "task": task, "state": State.RUNNING})
        request = FindRequest(**filters, limit=wanted, cursor=cursor_of(cursor))
        before = await self._now() - longest
        found: list[Job[Any]] = []
        while True:
            reply = await self._client.store.jobs.find(replace(request, limit=wanted - len(found)))
            found += [
                self._client.show(record)
                for record in reply.jobs
                if record.started_at is not None and record.started_at < before
            ]
            if reply.cursor is None or len(found) == wanted:
                return Page(tuple(found), reply.cursor)
            request = replace(request, cursor=reply.cursor)

    def explain(self, id: UUID | str, /) -> Waiting:
        """Return why a job is not running, and what to do about it."""
        return self._client.portal.run(self.aexplain(id))

    async def aexplain(self, id: UUID | str, /) -> Waiting:
        """Return why a job is not running, and what to do about it."""
        wanted = parse_id(id)
        why = await self._client.store.jobs.explain(ExplainRequest(scope=scope_for(None), id=wanted))
        if why is None:
            raise JobNotFound(wanted)
        job = await self._client.aget(wanted, scope_for(None))
        origin = scheduled_slot(job.tenant, job.created_by, job.correlation_id)
        return waiting_of(why, await self._pause(why), origin)

    async def _pause(self, why: Why) -> Hold | None:
        """Return the pause that holds a job. No scope is needed: who may see the job may see its pause."""
        if why.reason != "paused":
            return None
        kind, _, name = why.subject.partition(" ")
        subject = Subject(SubjectKind(kind), name)
        request = ReadRequest(scope=Scope.all(), subjects=(subject,))
        return (await self._client.store.policies.read(request))[subject].paused
