"""`app.jobs`: look at jobs in whatever state they are, cancel them, run them now.

Every call is scoped (S9): inside a tenant only that tenant's jobs exist, outside `tenant=` narrows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from fairlane.app.ambient import scope_for
from fairlane.app.client import Client
from fairlane.app.counting import count_all
from fairlane.app.job import Job
from fairlane.app.waiting import Waiting, waiting_of
from fairlane.model.errors import JobNotFound
from fairlane.model.identifiers import parse_id
from fairlane.model.instants import Instant, to_instant
from fairlane.model.layers import Hold, Kind, Subject
from fairlane.model.lifecycle import CancelReply, State
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import (
    ExplainRequest,
    FindRequest,
    PeekRequest,
    RunNowRequest,
    StopRequest,
    Why,
)
from fairlane.store.contract.policies import ReadRequest
from fairlane.store.contract.request import PAGE_MOST

T_co = TypeVar("T_co", covariant=True)


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
        parent: UUID | None = None,
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
        parent: UUID | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Job[Any]]:
        """Give a page of the jobs that meet every filter, newest enqueue first; see `find`."""
        request = FindRequest(
            scope=scope_for(tenant),
            states=_states(state),
            queue=queue,
            task=task,
            correlation_id=correlation_id,
            tag=tag,
            parent_id=parent,
            since=_instant(since),
            until=_instant(until),
            limit=within_page("limit", limit),
            cursor=cursor,
        )
        reply = await self._client.store.jobs.find(request)
        return Page(tuple(self._client.show(record) for record in reply.jobs), reply.cursor)

    def count(self, *, tenant: str | None = None, queue: str | None = None) -> Mapping[State, int]:
        """Count jobs by state, of one tenant or queue or of all; every state is there."""
        return self._client.portal.run(self.acount(tenant=tenant, queue=queue))

    async def acount(self, *, tenant: str | None = None, queue: str | None = None) -> Mapping[State, int]:
        """Count jobs by state, of one tenant or queue or of all; every state is there."""
        counts = dict.fromkeys(State, 0)
        async for count in count_all(self._client.store, scope_for(tenant), queue):
            counts[count.state] += count.jobs
        return counts

    def peek(self, queue: str, n: int = 10, *, tenant: str | None = None) -> Sequence[Job[Any]]:
        """Give the next n jobs in the order in which they would be claimed now, without taking them (S65)."""
        return self._client.portal.run(self.apeek(queue, n, tenant=tenant))

    async def apeek(self, queue: str, n: int = 10, *, tenant: str | None = None) -> Sequence[Job[Any]]:
        """Give the next n jobs in the order in which they would be claimed now, without taking them (S65)."""
        request = PeekRequest(scope=scope_for(tenant), queue=queue, most=within_page("n", n))
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
        scope = scope_for(None)
        replies: dict[UUID, CancelReply] = {}
        ahead = list(dict.fromkeys(parse_id(id) for id in ids))
        while ahead:
            # A parent first, then its children: what it enqueues while it still runs is then found too.
            request = StopRequest(scope=scope, ids=tuple(ahead), reason=reason)
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


def _states(state: State | Iterable[State] | None) -> frozenset[State]:
    if state is None:
        return frozenset()
    # A state is a text as well, and a text is an iterable.
    wanted = frozenset([State(state)] if isinstance(state, str) else map(State, state))
    if not wanted:
        message = "state names no state; leave it out to find jobs in every state"
        raise ValueError(message)
    return wanted


def _instant(moment: datetime | None) -> Instant | None:
    return None if moment is None else to_instant(moment)


def within_page(name: str, number: int) -> int:
    """Refuse a number of items that no page can have."""
    if not 1 <= number <= PAGE_MOST:
        message = f"{name} is {number}; use 1 to {PAGE_MOST}, and the cursor for more"
        raise ValueError(message)
    return number
