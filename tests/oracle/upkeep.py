"""The upkeep facet of the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from fairlane.model.finished_job import finished_job
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.record_changes import scrubbed, stopped
from fairlane.model.lifecycle.states import (
    HOT,
    WAITING,
    Because,
    Home,
    State,
    because,
    home,
    is_finished,
)
from fairlane.model.policy.pressure import EarlyCut, StoreSize, early_cut
from fairlane.model.policy.prune_mark import mark_after, spans
from fairlane.model.policy.retention import CountCuts
from fairlane.model.review import ReviewRecord, scrubbed_review
from fairlane.store.contract.inspection import (
    Inspection,
    InspectRequest,
    LeadRecord,
    StoredPart,
    wanted_parts,
)
from fairlane.store.contract.repair import MAX_COMPARED, RepairReply, RepairRequest
from fairlane.store.contract.request import (
    MAX_ROWS_READ,
    CounterPosition,
    JobPosition,
    Request,
    check_page,
    from_cursor,
    to_cursor,
)
from fairlane.store.contract.upkeep import (
    Census,
    CensusRequest,
    DedicateRequest,
    ForgetReply,
    ForgetRequest,
    GateCounter,
    MigrateReply,
    PruneReply,
    PruneRequest,
    PurgeReply,
    PurgeRequest,
    TenantCounters,
    not_dedicated,
)
from tests.oracle.core import Core

JOB_SIZE: Final = 100
"""Bytes of a job beside what it carries."""


class OracleUpkeep:
    """The store itself."""

    def __init__(self, core: Core) -> None:
        """Share the state with the other facets."""
        self._core = core
        self._purpose: str | None = None

    async def migrate(self) -> MigrateReply:
        """Do nothing: memory has no older schema."""
        return await self.plan()

    async def plan(self) -> MigrateReply:
        return MigrateReply(1, 1)

    async def prune(self, request: PruneRequest) -> PruneReply:
        books, now, keep = self._core.books, self._core.now(), request.retention
        finished = [job for job in books.jobs.values() if is_finished(job.state)]
        finished.sort(key=lambda job: (job.settled_at, job.id.bytes))
        dead = [job for job in finished if job.state is State.DEAD]
        history = [job for job in finished if job.state is not State.DEAD]
        early = _early(history, request)
        cut = request.mark.next_cut
        if not request.mark.is_under_way:
            cut = max(_cut(history, keep.newest_finished), early.at)
        cuts = CountCuts(cut, _cut(dead, keep.newest_dead))
        due = spans(keep, now, cuts, request.mark)
        states: Counter[State] = Counter()
        results = keys = last = 0
        for job in finished:
            is_read = job.state is State.DEAD or any(
                one.first <= (job.settled_at or 0) <= one.last for one in due
            )
            if not is_read or not request.scope.covers(job.tenant):
                continue
            age = now - (job.settled_at or now)
            is_over = keep.is_over(job, books.reviews.get(job.id, ReviewRecord()), now, cuts)
            is_result_over = bool(job.result) and age >= keep.results
            if not is_over and not is_result_over:
                continue
            if states.total() + results == request.limit:
                mark = mark_after(request.mark, now, cuts, last)
                return PruneReply(
                    states.total(),
                    results,
                    is_partial=True,
                    states=dict(states),
                    mark=mark,
                    has_more_early=early.has_more,
                    size=self._size() if request.is_measured else None,
                )
            last = job.settled_at or 0
            if is_over:
                if request.is_archived:
                    books.archive(finished_job(job, books.reviews.get(job.id)))
                books.drop(job)
                states[job.state] += 1
            else:
                books.change(job, result=b"")
                results += 1
        for name, key in list(books.keys.items()):
            is_over = key.settled_at is not None and now - key.settled_at >= keep.keys
            if is_over and request.scope.covers(name[0]) and key.id not in books.jobs:
                del books.keys[name]
                keys += 1
        mark = mark_after(request.mark, now, cuts)
        return PruneReply(
            states.total(),
            results,
            keys,
            states=dict(states),
            mark=mark,
            has_more_early=early.has_more,
            size=self._size() if request.is_measured else None,
        )

    def _size(self) -> StoreSize:
        """Return what the jobs carry: memory has no files."""
        jobs = self._core.books.jobs.values()
        return StoreSize(sum(JOB_SIZE + len(job.payload) + len(job.result or b"") for job in jobs))

    async def forget(self, request: ForgetRequest) -> ForgetReply:
        tenant = request.scope.tenant
        if tenant is None:
            message = "forget needs the scope of one tenant"
            raise ValueError(message)
        books, now = self._core.books, self._core.now()
        mine = [job for job in books.jobs.values() if job.tenant == tenant]
        page = _after(mine, request.cursor)
        running = [job for job in mine if job.state is State.RUNNING]
        for job in running:
            if not job.is_cancel_asked:
                books.change(job, is_cancel_asked=True, because=because(Because.ASKED, request.reason))
            self._core.hint(workers={str(job.worker)})
        left = [
            job
            for job in page[:MAX_ROWS_READ]
            if job.state is not State.RUNNING
            and not (is_forgotten(job) and _is_review_forgotten(books.reviews.get(job.id)))
        ]
        for job in left[: request.limit]:
            ended = job
            if job.state in WAITING:
                word = because(Because.PURGED, request.reason)
                ended = books.save(stopped(job, State.CANCELLED, word, now))
            books.save(scrubbed(ended))
            if job.id in books.reviews:
                books.reviews[job.id] = scrubbed_review(books.reviews[job.id])
        cursor = _cursor(page, left, request.limit)
        if cursor is not None:
            return ForgetReply(len(left[: request.limit]), len(running), cursor)
        for name in [name for name in books.keys if name[0] == tenant]:
            holder = books.jobs.get(books.keys[name].id)
            if holder is None or is_finished(holder.state):
                del books.keys[name]
        books.forget_batches(tenant)
        books.budgets.forget(tenant, is_running=bool(running))
        return ForgetReply(len(left), len(running))

    async def purge(self, request: PurgeRequest) -> PurgeReply:
        books, now = self._core.books, self._core.now()
        word = because(Because.PURGED, request.reason)
        page = _after([job for job in books.jobs.values() if job.state in WAITING], request.cursor)
        waiting = [
            job
            for job in page[:MAX_ROWS_READ]
            if request.scope.covers(job.tenant)
            and request.queue in {None, job.queue}
            and request.task in {None, job.task}
        ]
        for job in waiting[: request.limit]:
            books.change(job, state=State.CANCELLED, because=word, settled_at=now)
        return PurgeReply(len(waiting[: request.limit]), _cursor(page, waiting, request.limit))

    async def census(self, request: CensusRequest) -> Census:
        check_page(request.limit)
        tenants, cursor = self._tenants_books(request)
        if request.cursor is not None:
            return Census(
                homes={}, tenants=tenants, gates=(), idempotency_keys=0, dedup_keys=0, cursor=cursor
            )
        books, covers = self._core.books, request.scope.covers
        homes = Counter(home(job.state) for job in books.jobs.values() if covers(job.tenant))
        return Census(
            homes={one: homes[one] for one in Home if homes[one]},
            tenants=tenants,
            gates=await self.gates(request),
            idempotency_keys=sum(covers(tenant) for tenant, _ in books.keys),
            dedup_keys=sum(covers(key[0]) for key in books.dedup),
            cursor=cursor,
        )

    async def repair(self, request: RepairRequest) -> RepairReply:
        """Count the jobs: memory derives nothing that could be wrong."""
        if not request.scope.covers(request.tenant):
            return RepairReply(0)
        jobs = sum(
            (job.queue, job.tenant) == (request.queue, request.tenant) and job.state in HOT
            for job in self._core.books.jobs.values()
        )
        return RepairReply(jobs if jobs <= MAX_COMPARED else None)

    async def gates(self, request: Request) -> tuple[GateCounter, ...]:
        used = self._core.books.gate_used if request.scope.tenant is None else Counter[str]()
        return tuple(GateCounter(gate, number) for gate, number in sorted(used.items()) if number)

    async def inspect(self, request: InspectRequest) -> Inspection:
        """Report that memory has no files and no settings."""
        books = self._core.books
        hot = [job for job in books.jobs.values() if job.state in HOT and request.scope.covers(job.tenant)]
        leases = [job.lease_until for job in hot if job.lease_until is not None]
        return Inspection(
            settings={},
            leads=tuple(sorted(LeadRecord(name, *lead) for name, lead in books.leads.items())),
            tasks=tuple(sorted({job.task for job in hot})),
            first_lease_until=min(leases, default=None),
            size=self._size(),
            parts=(StoredPart(name="jobs", kind="memory", entries=len(books.jobs), size=None),)[
                : wanted_parts(request)
            ],
        )

    async def dedicate(self, request: DedicateRequest) -> None:
        before = self._purpose
        if before == request.purpose:
            return
        if before is not None or self._core.books.jobs:
            raise ValueError(not_dedicated(before))
        self._purpose = request.purpose

    async def purpose(self, request: Request) -> str | None:
        return self._purpose

    def _tenants_books(self, request: CensusRequest) -> tuple[tuple[TenantCounters, ...], str | None]:
        books, covers = self._core.books, request.scope.covers
        start = (
            CounterPosition("", "")
            if request.cursor is None
            else from_cursor(request.cursor, CounterPosition)
        )
        hot = {(queue, tenant) for (tenant, queue, state) in books.counts if covers(tenant) and state in HOT}
        flows = sorted(flow for flow in hot if flow > (start.queue, start.tenant))
        page, rest = flows[: request.limit], flows[request.limit :]
        found = (TenantCounters(*flow, books.waiting(*flow), books.running(*flow)) for flow in page)
        return tuple(found), to_cursor(CounterPosition(*page[-1])) if page and rest else None

    async def aclose(self) -> None:
        """Do nothing: memory holds nothing open."""


def _after(jobs: list[JobRecord], cursor: str | None) -> list[JobRecord]:
    """Return jobs, oldest enqueue first, from after the cursor."""
    place = None if cursor is None else from_cursor(cursor)
    start = (0, b"") if place is None else (place.enqueued_at, place.id.bytes)
    return sorted((job for job in jobs if _place(job) > start), key=_place)


def _place(job: JobRecord) -> tuple[Instant, bytes]:
    return job.enqueued_at, job.id.bytes


def _cursor(page: list[JobRecord], found: list[JobRecord], limit: int) -> str | None:
    """Return the cursor of the next pass: after the last job that was changed or read."""
    last = (
        found[limit - 1]
        if len(found) > limit
        else page[MAX_ROWS_READ - 1]
        if len(page) > MAX_ROWS_READ
        else None
    )
    return None if last is None else to_cursor(JobPosition(last.enqueued_at, last.id))


def _is_review_forgotten(record: ReviewRecord | None) -> bool:
    return record is None or record == scrubbed_review(record)


def is_forgotten(job: JobRecord) -> bool:
    """Whether a job has been scrubbed already."""
    return is_finished(job.state) and job == scrubbed(job)


def _early(history: Sequence[JobRecord], request: PruneRequest) -> EarlyCut:
    """Return what goes early, of jobs in the order of their ends."""
    if not request.is_early or request.mark.is_under_way:
        return EarlyCut(has_more=request.is_early)
    ends = [job.settled_at or 0 for job in history]
    return early_cut([end for end in ends if end >= request.mark.cut][: request.limit], request.limit)


def _cut(jobs: Sequence[JobRecord], newest: int | None) -> Instant:
    """Return when the last of the newest ended, of jobs in the order of their ends."""
    return 0 if newest is None or len(jobs) < newest else jobs[-newest].settled_at or 0
