"""The jobs facet: put in, looked at, changed while they wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import UNSET

from fairlane.model.errors import TenantMismatch, Unsupported
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.layers import Kind, Subject
from fairlane.model.lifecycle import TRANSITIONS, WAITING, Because, CancelReply, Event, State, because
from fairlane.model.moves import hurried, stopped
from fairlane.model.priority import sort_key
from fairlane.store.contract.jobs import (
    CountPage,
    CountRequest,
    EditReply,
    EditRequest,
    EnqueueReply,
    EnqueueRequest,
    ExplainRequest,
    FindReply,
    FindRequest,
    GetRequest,
    PeekRequest,
    RunNowRequest,
    StopRequest,
    TallyPage,
    TallyRequest,
    Why,
    check_edit,
)
from fairlane.store.contract.reading import explain_by_state
from fairlane.store.contract.registry import LIVE_WITHIN
from fairlane.store.contract.request import check_page
from fairlane.store.redis.cards import read_workers
from fairlane.store.redis.connect import NO_JOINING, Wire
from fairlane.store.redis.counting import count, tasks_of
from fairlane.store.redis.enqueue import enqueue
from fairlane.store.redis.finding import find
from fairlane.store.redis.homes import Change, Homes
from fairlane.store.redis.peeking import peek
from fairlane.store.redis.rows import Kept, to_body
from fairlane.store.redis.tallying import tally

_AHEAD_MOST: Final = 10_000
_UNCOUNTED: Final = -1
_TASKS_AT_ONCE: Final = 50


class RedisJobs:
    """Jobs as callers and operators see them."""

    def __init__(self, wire: Wire) -> None:
        """Share the connections with the other facets."""
        self._wire = wire
        self._homes = Homes(wire)

    async def enqueue(self, request: EnqueueRequest) -> EnqueueReply:
        """See the contract."""
        _refuse_foreign(request)
        return await enqueue(self._wire, request) if request.jobs else EnqueueReply()

    async def enqueue_in(self, connection: Any, request: EnqueueRequest) -> EnqueueReply:  # noqa: ARG002
        """See the contract: there is no transaction to join here."""
        _refuse_foreign(request)
        raise Unsupported(NO_JOINING)

    async def get(self, request: GetRequest) -> Mapping[UUID, JobRecord]:
        """See the contract."""
        _, found = await self._homes.get(request.ids)
        return {id: kept.job for id, kept in found.items() if request.scope.covers(kept.job.tenant)}

    async def find(self, request: FindRequest) -> FindReply:
        """See the contract."""
        return await find(self._wire, request)

    async def count(self, request: CountRequest) -> CountPage:
        """See the contract."""
        check_page(request.limit)
        return await count(self._wire, request)

    async def tally(self, request: TallyRequest) -> TallyPage:
        """See the contract."""
        return await tally(self._wire, request)

    async def peek(self, request: PeekRequest) -> tuple[JobRecord, ...]:
        """See the contract."""
        check_page(request.most)
        ids = await peek(self._wire, request)
        _, found = await self._homes.get(ids)
        return tuple(found[id].job for id in ids if id in found)

    async def explain(self, request: ExplainRequest) -> Why | None:
        """See the contract."""
        while True:
            _, found = await self._homes.get((request.id,))
            kept = found.get(request.id)
            if kept is None or not request.scope.covers(kept.job.tenant):
                return None
            why = explain_by_state(kept.job) or await self._explain_ready(kept.job)
            if why is not None:
                return why

    async def _explain_ready(self, job: JobRecord) -> Why | None:
        """Say what holds a ready job; None if it is ready no more."""
        found = await self._wire.run("explain", job.id.bytes)
        if not found:
            return None
        reason, subject, until, ahead = found
        if ahead == _UNCOUNTED:
            ahead = await self._count_ahead(job)
        ahead = min(ahead, _AHEAD_MOST)
        if reason:
            return Why(reason.decode(), subject.decode(), until or None, ahead)
        now, workers = await read_workers(self._wire)
        is_served = any(job.queue in one.card.queues and now - one.beat_at <= LIVE_WITHIN for one in workers)
        return Why("turn" if is_served else "no_worker", str(Subject(Kind.QUEUE, job.queue)), None, ahead)

    async def _count_ahead(self, job: JobRecord) -> int:
        """Count the jobs that go first of a tenant with many tasks, some tasks by each script."""
        ahead, tasks = 0, iter(await tasks_of(self._wire, job.queue, job.tenant))
        while ahead < _AHEAD_MOST and (some := tuple(islice(tasks, _TASKS_AT_ONCE))):
            found = await self._wire.run("explain", job.id.bytes, *some)
            ahead += found[-1] if found else 0
        return ahead

    async def edit(self, request: EditRequest) -> EditReply:
        """See the contract."""
        check_edit(request)
        reply = EditReply("not_found")

        def edited(now: Instant, kept: Kept) -> Change | None:
            nonlocal reply
            reply = _edited(request, kept.job, now)
            if reply.job is None:
                return None
            return Change(kept, reply.job, body=to_body(reply.job), queues=(reply.job.queue,))

        await self._homes.change(request.scope, (request.id,), edited)
        return reply

    async def cancel(self, request: StopRequest) -> Mapping[UUID, CancelReply]:
        """See the contract."""
        word = because(Because.ASKED, request.reason)
        replies: dict[UUID, CancelReply] = {}

        def cancelled(now: Instant, kept: Kept) -> Change | None:
            job = kept.job
            if (job.state, Event.CANCEL) in TRANSITIONS:
                replies[job.id] = CancelReply.CANCELLED
                return Change(kept, stopped(job, State.CANCELLED, word, now))
            if (job.state, Event.ASK_CANCEL) in TRANSITIONS:
                replies[job.id] = CancelReply.REQUESTED
                return ask_to_stop(kept, word)
            replies[job.id] = CancelReply.FINISHED
            return None

        await self._homes.change(request.scope, dict.fromkeys(request.ids), cancelled)
        return {id: replies[id] for id in dict.fromkeys(request.ids) if id in replies}

    async def condemn(self, request: StopRequest) -> tuple[UUID, ...]:
        """See the contract."""
        word = because(Because.CONDEMNED, request.reason)
        return await self._move(
            request,
            request.ids,
            Event.CONDEMN,
            lambda now, kept: Change(kept, stopped(kept.job, State.DEAD, word, now)),
        )

    async def run_now(self, request: RunNowRequest) -> tuple[UUID, ...]:
        """See the contract."""
        return await self._move(
            request,
            request.ids,
            Event.RUN_NOW,
            lambda now, kept: Change(kept, hurried(kept.job, now), queues=(kept.job.queue,)),
        )

    async def _move(
        self,
        request: StopRequest | RunNowRequest,
        ids: tuple[UUID, ...],
        event: Event,
        becomes: Callable[[Instant, Kept], Change],
    ) -> tuple[UUID, ...]:
        def moved(now: Instant, kept: Kept) -> Change | None:
            return becomes(now, kept) if (kept.job.state, event) in TRANSITIONS else None

        return await self._homes.change(request.scope, dict.fromkeys(ids), moved)


def _refuse_foreign(request: EnqueueRequest) -> None:
    for job in request.jobs:
        if not request.scope.covers(job.tenant):
            raise TenantMismatch(job.tenant, str(request.scope.tenant))


def ask_to_stop(kept: Kept, word: str) -> Change:
    """Set a running job's flag and tell its worker; the first reason stays."""
    job = kept.job
    if not job.is_cancel_asked:
        job = msgspec.structs.replace(job, is_cancel_asked=True, because=word)
    return Change(kept, job, workers=(str(job.worker),))


def _edited(request: EditRequest, job: JobRecord, now: Instant) -> EditReply:
    if job.state not in WAITING:
        return EditReply("not_waiting")
    if request.run_at is not UNSET and job.state is not State.DELAYED:
        return EditReply("not_delayed")
    names = ("priority", "run_at", "expires_at", "tags", "payload", "checksum", "version")
    given = {name: getattr(request, name) for name in names}
    changed = msgspec.structs.replace(job, **{name: v for name, v in given.items() if v is not UNSET})
    if request.run_at is not UNSET and changed.run_at <= now:
        changed = hurried(changed, now)
    changed = msgspec.structs.replace(changed, sort_key=sort_key(changed.run_at, changed.priority))
    return EditReply("edited", changed)
