"""The jobs facet of the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET

from fairlane.model.errors import TenantMismatch, Unsupported
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord, NewJob
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.facts import deaths, over_limit
from fairlane.model.lifecycle.admission import (
    AdmissionFacts,
    Admitted,
    KeyHolder,
    Refusal,
    Repeat,
    admit,
    linked_to_dead,
)
from fairlane.model.lifecycle.record_changes import new_record, stopped
from fairlane.model.lifecycle.states import (
    TRANSITIONS,
    WAITING,
    Because,
    CancelReply,
    Event,
    State,
    because,
)
from fairlane.model.policy.overrides import Subject, SubjectKind
from fairlane.model.scheduling.priority import sort_key
from fairlane.store.contract.filters import Tallies, explain_by_state, matches, matches_fields
from fairlane.store.contract.jobs import (
    Count,
    CountPage,
    CountRequest,
    EditReply,
    EditRequest,
    Enqueued,
    EnqueueReply,
    EnqueueRequest,
    ExplainRequest,
    FindReply,
    FindRequest,
    GetRequest,
    OverLimit,
    PeekRequest,
    RunNowRequest,
    StopRequest,
    TallyPage,
    TallyRequest,
    Why,
    check_edit,
)
from fairlane.store.contract.line import FirstInLine, FirstRequest, lines_in
from fairlane.store.contract.request import (
    MAX_ROWS_READ,
    CountPosition,
    JobPosition,
    Request,
    check_counts,
    check_page,
    check_reading,
    from_cursor,
    to_cursor,
)
from tests.oracle.audit import Audit
from tests.oracle.books import Books, Key
from tests.oracle.claims import claim_one, explain_ready, make_ready
from tests.oracle.core import Core


class OracleJobs:
    """Jobs as callers and operators see them."""

    def __init__(self, core: Core) -> None:
        """Share the state with the other facets."""
        self._core = core

    # ── enqueue ───────────────────────────────────────────────────────────────

    async def enqueue(self, request: EnqueueRequest) -> EnqueueReply:
        _refuse_foreign(request)
        draft = self._core.books.copy()
        now = self._core.now()
        enqueued: list[Enqueued] = []
        refused: list[Refusal] = []
        over: list[tuple[OverLimit, str | None]] = []
        created: list[JobRecord] = []
        for index, job in enumerate(request.jobs):
            standing = facts_of(draft, job, now, must_be_declared=request.must_be_declared)
            match admit(index, job, standing, repeated=request.is_repeated):
                case Refusal() as refusal:
                    refused.append(refusal)
                case Repeat(existing):
                    answer = draft.jobs.get(existing) or _husk(draft, job)
                    enqueued.append(Enqueued(answer, is_created=existing == job.id))
                case Admitted(limit, replaces):
                    dead = None if replaces is None else draft.jobs.get(replaces)
                    created.append(store_new(draft, linked_to_dead(job, dead), now))
                    enqueued.append(Enqueued(created[-1], is_created=True))
                    if limit is not None:
                        waiting = draft.waiting(job.queue, job.tenant)
                        over.append((OverLimit(job.tenant, job.queue, waiting, limit), job.created_by))
        if refused:
            return EnqueueReply(refused=tuple(refused))
        self._core.books = draft
        self._core.hint({one.job.queue for one in enqueued if one.is_created})
        self._core.append("events", *_warnings(over))
        for made in created:
            Audit(self._core, request.operation).created(made)
        return EnqueueReply(tuple(enqueued), (), tuple(one for one, _ in over))

    async def enqueue_in(self, connection: Any, request: EnqueueRequest) -> EnqueueReply:
        """Refuse: memory has no transactions."""
        _refuse_foreign(request)
        raise Unsupported("the oracle has no connections; for another database use the outbox")

    # ── looking ───────────────────────────────────────────────────────────────

    def _seen(self, request: Request) -> Iterable[JobRecord]:
        return (job for job in self._core.books.jobs.values() if request.scope.covers(job.tenant))

    def _one(self, request: Request, id: UUID) -> JobRecord | None:
        job = self._core.books.jobs.get(id)
        return job if job is not None and request.scope.covers(job.tenant) else None

    async def get(self, request: GetRequest) -> Mapping[UUID, JobRecord]:
        found = {id: self._one(request, id) for id in request.ids}
        return {id: job for id, job in found.items() if job is not None}

    async def find(self, request: FindRequest) -> FindReply:
        start = None if request.cursor is None else from_cursor(request.cursor)
        rows = sorted(self._seen(request), key=_place, reverse=True)
        if start is not None:
            rows = [job for job in rows if _place(job) < (start.enqueued_at, start.id.bytes)]
        found: list[JobRecord] = []
        for read, job in enumerate(rows, 1):
            if matches(job, request):
                found.append(job)
            if (len(found) == request.limit or read == MAX_ROWS_READ) and read < len(rows):
                return FindReply(tuple(found), to_cursor(JobPosition(job.enqueued_at, job.id)))
        return FindReply(tuple(found), None)

    async def count(self, request: CountRequest) -> CountPage:
        check_counts(request.limit)
        start = (
            CountPosition("", "", "")
            if request.cursor is None
            else from_cursor(request.cursor, CountPosition)
        )
        counts = sorted(
            Count(*key, number)
            for key, number in self._core.books.counts.items()
            if (key[0], key[1], key[2].value) > (start.tenant, start.queue, start.label)
            and request.scope.covers(key[0])
            and request.queue in {None, key[1]}
        )
        page, rest = counts[: request.limit], counts[request.limit :]
        last = CountPosition(page[-1].tenant, page[-1].queue, page[-1].state.value) if page and rest else None
        return CountPage(tuple(page), None if last is None else to_cursor(last))

    async def tally(self, request: TallyRequest) -> TallyPage:
        check_reading(request.limit)
        start = None if request.cursor is None else from_cursor(request.cursor)
        indexed = TallyRequest(
            scope=request.scope,
            correlation_id=request.correlation_id,
            since=request.since,
            until=request.until,
        )
        rows = sorted((job for job in self._seen(request) if matches_fields(job, indexed)), key=_place)
        if start is not None:
            rows = [job for job in rows if _place(job) > (start.enqueued_at, start.id.bytes)]
        found = Tallies()
        for job in rows[: request.limit]:
            if matches_fields(job, request):
                found.add_job(job)
        looked_at = min(len(rows), request.limit)
        last = rows[looked_at - 1] if len(rows) > request.limit else None
        return found.page(
            looked_at, None if last is None else to_cursor(JobPosition(last.enqueued_at, last.id))
        )

    async def peek(self, request: PeekRequest) -> tuple[JobRecord, ...]:
        check_page(request.limit)
        draft, now, only = self._core.books.copy(), self._core.now(), request.scope.tenant
        waking = make_ready(draft, request.queue, now, only)
        found: list[JobRecord] = []
        while len(found) < request.limit:
            job = claim_one(draft, request.queue, now, waking, only=only)
            if job is not None:
                found.append(self._core.books.jobs[job.id])
            elif waking.is_partial:
                waking = make_ready(draft, request.queue, now, only)
            else:
                break
        return tuple(found)

    async def first_in_line(self, request: FirstRequest) -> tuple[FirstInLine, ...]:
        found: list[FirstInLine] = []
        for line in lines_in(request):
            ready = [
                job
                for job in self._core.books.jobs.values()
                if (job.state, job.tenant, job.queue) == (State.READY, line.tenant, line.queue)
            ]
            if ready:
                first = min(ready, key=lambda job: (job.sort_key, job.id.bytes))
                found.append(FirstInLine(line, first.id, first.run_at))
        return tuple(found)

    async def explain(self, request: ExplainRequest) -> Why | None:
        job = self._one(request, request.id)
        if job is None:
            return None
        return explain_by_state(job) or explain_ready(self._core.books, job, self._core.now())

    # ── changing ──────────────────────────────────────────────────────────────

    async def edit(self, request: EditRequest) -> EditReply:
        check_edit(request)
        job = self._one(request, request.id)
        if job is None:
            return EditReply("not_found")
        if job.state not in WAITING:
            return EditReply("not_waiting")
        if request.run_at is not UNSET and job.state is not State.DELAYED:
            return EditReply("not_delayed")
        now = self._core.now()
        names = ("priority", "run_at", "expires_at", "tags", "payload", "checksum", "version")
        given = {name: getattr(request, name) for name in names}
        changed = msgspec.structs.replace(job, **{k: v for k, v in given.items() if v is not UNSET})
        if request.run_at is not UNSET and changed.run_at <= now:
            changed = msgspec.structs.replace(changed, state=State.READY, because=None, run_at=now)
        if (changed.run_at, changed.priority) != (job.run_at, job.priority):
            changed = msgspec.structs.replace(changed, sort_key=sort_key(changed.run_at, changed.priority))
        self._core.books.save(changed)
        self._core.hint({job.queue})
        Audit(self._core, request.operation).changed(job, changed)
        return EditReply("edited", changed)

    async def cancel(self, request: StopRequest) -> Mapping[UUID, CancelReply]:
        replies: dict[UUID, CancelReply] = {}
        audit = Audit(self._core, request.operation)
        word = because(Because.ASKED, request.reason)
        for id in request.ids:
            job = self._one(request, id)
            if job is None:
                continue
            if (job.state, Event.CANCEL) in TRANSITIONS:
                audit.changed(job, self._end(job, State.CANCELLED, word))
                replies[id] = CancelReply.CANCELLED
            elif (job.state, Event.ASK_CANCEL) in TRANSITIONS:
                if not job.is_cancel_asked:
                    audit.changed(job, self._core.books.change(job, is_cancel_asked=True, because=word))
                self._core.hint(workers={str(job.worker)})
                replies[id] = CancelReply.REQUESTED
            else:
                replies[id] = CancelReply.FINISHED
        return replies

    async def condemn(self, request: StopRequest) -> tuple[UUID, ...]:
        word = because(Because.CONDEMNED, request.reason)
        moved = self._move(request, Event.CONDEMN, lambda job: self._end(job, State.DEAD, word))
        self._core.append("events", *deaths(moved))
        return tuple(job.id for job in moved)

    async def run_now(self, request: RunNowRequest) -> tuple[UUID, ...]:
        return tuple(job.id for job in self._move(request, Event.RUN_NOW, self._core.make_ready))

    def _move(
        self, request: StopRequest | RunNowRequest, event: Event, move: Callable[[JobRecord], JobRecord]
    ) -> list[JobRecord]:
        moved = []
        for id in dict.fromkeys(request.ids):
            job = self._one(request, id)
            if job is not None and (job.state, event) in TRANSITIONS:
                moved.append(move(job))
                Audit(self._core, request.operation).changed(job, moved[-1])
        return moved

    def _end(self, job: JobRecord, state: State, word: str) -> JobRecord:
        return self._core.books.save(stopped(job, state, word, self._core.now()))


def _place(job: JobRecord) -> tuple[Instant, bytes]:
    return job.enqueued_at, job.id.bytes


def _refuse_foreign(request: EnqueueRequest) -> None:
    for job in request.jobs:
        if not request.scope.covers(job.tenant):
            raise TenantMismatch(job.tenant, str(request.scope.tenant))


def _warnings(over: list[tuple[OverLimit, str | None]]) -> list[NewEntry]:
    """Return one event for each tenant and queue."""
    last = {(one.tenant, one.queue): (one, created_by) for one, created_by in over}
    counts = Counter((one.tenant, one.queue) for one, _ in over)
    return [
        over_limit(one.tenant, one.queue, one.waiting, one.limit, counts[name], created_by)
        for name, (one, created_by) in last.items()
    ]


def facts_of(books: Books, job: NewJob, now: Instant, *, must_be_declared: bool) -> AdmissionFacts:
    """Return what the admission of a new job depends on."""
    known = Subject(SubjectKind.TENANT, job.tenant) in books.declared
    rules = books.queue_rules(job.queue, now)
    key = None if job.idempotency_key is None else books.keys.get((job.tenant, job.idempotency_key))
    dedup = None if job.dedup_key is None else books.dedup.get((job.tenant, job.task, job.dedup_key))
    same = books.jobs.get(job.id)
    return AdmissionFacts(
        is_tenant_known=known or not must_be_declared or job.tenant == "system",
        closed=_closed(books, job, now),
        same_id=None if same is None else same.id,
        is_id_foreign=same is not None and same.tenant != job.tenant,
        same_key=None if key is None else KeyHolder(key.id, key.fingerprint, key.state is State.DEAD),
        same_dedup=dedup,
        waiting=books.waiting(job.queue, job.tenant),
        limits=books.limits(job.queue, job.tenant, now),
        queue_waiting=books.waiting(job.queue),
        max_waiting=rules.max_waiting,
    )


def _closed(books: Books, job: NewJob, now: Instant) -> str | None:
    for kind, name in (
        (SubjectKind.QUEUE, job.queue),
        (SubjectKind.TENANT, job.tenant),
        (SubjectKind.TASK, job.task),
    ):
        hold = books.hold(books.closed, Subject(kind, name), now)
        if hold is not None:
            return f"{Subject(kind, name)}: {hold.reason}"
    return None


def store_new(books: Books, job: NewJob, now: Instant) -> JobRecord:
    """Store a job that was admitted, with its keys."""
    if job.idempotency_key is not None:
        books.keys[job.tenant, job.idempotency_key] = Key(job.id, job.fingerprint)
    if job.dedup_key is not None:
        books.dedup[job.tenant, job.task, job.dedup_key] = job.id
    return books.save(new_record(job, now))


def _husk(books: Books, job: NewJob) -> JobRecord:
    key = books.keys[job.tenant, str(job.idempotency_key)]
    assert key.state is not None
    assert key.settled_at is not None
    record = new_record(job, key.settled_at)
    return msgspec.structs.replace(
        record, id=key.id, state=key.state, because=None, settled_at=key.settled_at
    )
