"""Claim jobs in the fair order, one after the other.

The order is that of the contract (S41): the tenant with the lowest clock is served, and of its strands the
one whose head is first. Each job advances its tenant's clock by its stride, `SCALE / weight`. `fair_order`
reads the index only as far as the claim comes. What the claim meets and may not serve is parked (S42): it
leaves the index, so that neither this claim nor the next meets it again.

A worked example. Three tenants of a queue, clocks in units of `SCALE`, all strides 1 but that of C, whose
weight is 2:

    tenant  clock  ready since  ready strands (head first)  limits
    A         3         1       mail (a1, a2)               none
    B         3         2       mail (b1); report (b2)      the task `report` is paused
    C         4         3       mail (c1, c2, c3)           running limit 1, nothing running

A claim of 5 jobs serves

    a1   A and B have clock 3, A has been ready longer; A's clock becomes 4
    b1   B has clock 3; B's clock becomes 4, its next head is b2
    a2   A, B and C have clock 4; A has been ready longest; A is empty and leaves the index
    -    B has clock 4, ready longer than C; `report` is paused, so its strand is parked; without an open
         strand B leaves the index
    c1   C has clock 4; C's clock becomes 4.5, and one job of C runs
    -    C has clock 4.5; its running limit is reached, so the tenant queue C is parked

and returns a1, b1, a2, c1: four jobs, two parked rows. The next claim meets none of the three. C comes back
when c1 ends (`parking.unpark_after_running_limit`), B's strand by the first claim after the task is resumed
(`parking.mark_blocked`). If C had come from idleness with clock 0, its clock would have been raised to the
lowest clock in the index, 3 (`TenantQueues.virtual_now`), when it became ready.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import msgspec

from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.job import Claim
from fairlane.model.lifecycle.record_changes import claimed, promoted, stopped
from fairlane.model.lifecycle.states import Because, State, because, is_expired
from fairlane.model.scheduling.fairness import charge
from fairlane.store.breaker_changes import open_breakers
from fairlane.store.contract.claims import MAX_DUE, MAX_PARKED, ClaimReply, ClaimRequest
from fairlane.store.sqlite.claims.budgets import note_no_room, reserve_budget
from fairlane.store.sqlite.claims.fair_order import (
    HeadPrefetch,
    StrandHeap,
    StrandJobs,
    TenantHeap,
    position_of,
)
from fairlane.store.sqlite.claims.limits import ClaimRules, queue_block
from fairlane.store.sqlite.claims.parking import UnparkPass, breaker_times
from fairlane.store.sqlite.jobs.idempotency import release_dedup
from fairlane.store.sqlite.query import all_rows, json_array, one_value
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_rows import EXPIRES_AT
from fairlane.store.sqlite.tables.job_tables import LiveJob, move, read_live
from fairlane.store.sqlite.tables.tenant_queue_rows import Block, Strand, TenantQueue
from fairlane.store.sqlite.transaction import RecentClaim, Transaction

_SQL = load("claims")


def claim(tx: Transaction, request: ClaimRequest) -> ClaimReply:
    """Claim up to `request.total` jobs; if there are fewer, say when more may be claimable."""
    claim_pass = ClaimPass(tx, request)
    claims = claim_pass.run()
    permits = tuple(claim_pass.permits)
    named = open_breakers(tx.breakers.open(), tx.now) if claims and request.names_breakers else None
    if len(claims) >= request.total:
        return ClaimReply(tuple(claims), permits=permits, open_breakers=named)
    due, is_cut = next_due(tx, claim_pass.queues), claim_pass.is_ahead_cut
    return ClaimReply(tuple(claims), due, claim_pass.is_partial, is_cut, permits, named)


class ClaimPass:
    """One claim while it runs."""

    def __init__(self, tx: Transaction, request: ClaimRequest, only_tenant: str | None = None) -> None:
        """Start with nothing served. A peek passes `only_tenant`, to skip all other tenants."""
        self._tx = tx
        self._request = request
        self._only_tenant = only_tenant
        self._rules = ClaimRules(tx)
        self._prefetch = HeadPrefetch(tx)
        self._claims: list[Claim] = []
        self._unparks: dict[str, UnparkPass] = {}
        self._tenant_heaps: dict[tuple[str, bool], TenantHeap] = {}
        self._strand_heaps: dict[int, StrandHeap] = {}
        self._started: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
        self._taken: dict[int, tuple[int, bytes]] = {}
        self._parked = 0
        self._is_bound_met = False
        self.is_ahead_cut = False
        self.permits: list[UUID] = []

    def run(self) -> list[Claim]:
        """Serve the requests in order until the total is reached."""
        for queue_request in self._request.queue_requests:
            if len(self._claims) >= self._request.total or self.is_ahead_cut:
                break
            if queue_request.queue not in self._unparks:
                self._prepare(queue_request.queue)
            if queue_block(self._tx, queue_request.queue) is None:
                self._serve_request(queue_request.queue, queue_request.limit)
        self._flush()
        return self._claims

    @property
    def queues(self) -> Iterable[str]:
        """The queues that were served, or would have been."""
        return self._unparks

    @property
    def is_partial(self) -> bool:
        """Whether a bound on the work of one claim was met before the total was reached."""
        is_bound_met = self._is_bound_met or any(unpark.is_partial for unpark in self._unparks.values())
        return is_bound_met and len(self._claims) < self._request.total

    def _flush(self) -> None:
        """Write the claims, all jobs with equal values in one statement, then everything else."""
        for values, seqs in self._started.items():
            self._tx.write(_SQL.claimed, *values, json_array(seqs))
        self._tx.write_all(_SQL.taken, [(strand, *position) for strand, position in self._taken.items()])
        self._started.clear()
        self._taken.clear()
        self._tx.flush()

    def _prepare(self, queue: str) -> None:
        """Promote due jobs, and unpark what time, a policy or a free gate slot allows."""
        promoted_now = promote_due(self._tx, queue)
        if promoted_now:
            self._flush()
            self._is_bound_met = self._is_bound_met or promoted_now == MAX_DUE
        unpark = self._unparks[queue] = UnparkPass(self._tx, queue, self._only_tenant)
        if unpark.run():
            self._flush()

    def _serve_request(self, queue: str, limit: int) -> None:
        taken = 0
        while taken < limit and len(self._claims) < self._request.total:
            left = self._request.total - len(self._claims)
            if not self._serve_one(queue, only_idle=left <= self._request.headroom):
                return
            taken += 1
            if self._rules.queue(queue).rate and queue_block(self._tx, queue) is not None:
                return

    def _serve_one(self, queue: str, *, only_idle: bool) -> bool:
        """Serve the next job in the fair order; return False if there is none.

        `only_idle` skips tenants that run a job: the last slots are kept for the others (headroom).
        """
        tenants = self._tenant_heap(queue, only_idle=only_idle)
        while self._parked < MAX_PARKED:  # the work of one claim is bounded (S42)
            tenant_queue = tenants.first(self._request.total - len(self._claims))
            if tenant_queue is None:
                if self._fill_gates(self._unparks[queue], tenants):
                    continue
                return False
            block = self._rules.tenant_block(tenant_queue)
            if block is not None:
                tenants.drop()
                self._park(tenant_queue, block, queue)
                continue
            strands = self._strand_heap(tenant_queue)
            strand = strands.first()
            block = self._rules.strand_block(strand.task, tenant_queue.tenant)
            if block is not None:
                strands.drop()
                if block.reason == "budget":
                    note_no_room(self._tx, strand.task, tenant_queue.tenant)
                self._park(strand, block, queue)
                continue
            strands.drop()
            tenants.drop()
            is_served = self._take_head(strand, strands.jobs(strand), only_idle=only_idle)
            if self.is_ahead_cut:
                return False
            strands.push(strand)  # at its new head
            tenants.push(tenant_queue)  # at its new clock
            if is_served:
                return True
        self._is_bound_met = True
        return False

    def _park(self, what: TenantQueue | Strand, block: Block, queue: str) -> None:
        """Park a tenant queue or strand, for this claim and the next ones."""
        if block.reason == "breaker":  # woken from its line: with a time, all in it would wake at once
            block = msgspec.structs.replace(block, until=None)
        self._tx.tenant_queues.park(what, block)
        self._parked += 1
        if block.line() is not None:
            self._unparks[queue].note_at_gate()

    def _take_head(self, strand: Strand, jobs: StrandJobs, *, only_idle: bool) -> bool:
        """Claim the first job of a strand; return False if it had expired and was cancelled instead.

        Also False, with `is_ahead_cut`, if it may not be claimed ahead (S68): it stays as it is.
        """
        first = jobs.first()
        if first is None:
            message = f"strand {strand.id} counts {strand.ready} ready jobs and has none"
            raise AssertionError(message)
        if is_expired(first[EXPIRES_AT], self._tx.now):
            self._expire(strand, jobs)
            return False
        live = read_live(first)
        is_ahead = self._request.total - len(self._claims) <= self._request.ahead
        if is_ahead and not self._rules.may_be_ahead(strand.tenant_queue, live.job):
            self.is_ahead_cut = True
            return False
        self._advance_floor(strand.tenant_queue, only_idle=only_idle)
        self._claims.append(self._start(strand, jobs, live))
        return True

    def _advance_floor(self, tenant_queue: TenantQueue, *, only_idle: bool) -> None:
        """Let the queue's virtual time follow the clock that is served, if that is the lowest of all."""
        tenant_queues, queue = self._tx.tenant_queues, tenant_queue.queue
        is_lowest = not only_idle and self._only_tenant is None
        tenant_queues.raise_floor(queue, tenant_queue.vt if is_lowest else tenant_queues.virtual_now(queue))

    def _start(self, strand: Strand, jobs: StrandJobs, live: LiveJob) -> Claim:
        """Start the first job of a strand: charge its tenant, count it against all limits, take it out."""
        tx, request, tenant_queue = self._tx, self._request, strand.tenant_queue
        first = jobs.take()
        cost = self._estimated_cost(live, strand)
        stride = self._rules.stride(tenant_queue)
        tx.tenant_queues.charge(tenant_queue, charge(stride, SECOND if cost is None else cost))
        gate = self._rules.count_start(tenant_queue, strand.task)
        job = claimed(live.job, request.worker, request.lease, tx.now)
        is_over_budget = None if self._rules.is_free(strand.task) else reserve_budget(tx, job)
        if self._rules.take_permits(job):
            self.permits.append(job.id)
        if job.dedup_until == "started":
            release_dedup(tx, job)
        values = (job.attempt, job.fence, job.worker, job.started_at, job.lease_until, gate, cost)
        self._started[values].append(live.seq)
        position = self._taken[strand.id] = position_of(first)
        tenant_queue.running += 1
        tx.tenant_queues.take_head(strand, position, jobs.position() if strand.ready > 1 else None)
        if gate is None and cost is None and not live.has_keys and is_over_budget is None:
            tx.remember(RecentClaim(live.seq, strand.id, job))
        return Claim(job, job.fence, tx.now + request.lease, is_over_budget is True)

    def _estimated_cost(self, live: LiveJob, strand: Strand) -> Micros | None:
        """Return the time to charge at the start; None in queues that charge by the job."""
        if self._rules.queue(strand.tenant_queue.queue).cost != "seconds":
            return None
        estimate = self._tx.counters.estimates[strand.tenant_queue.queue, strand.task]
        return estimate if live.job.timeout is None else min(estimate, live.job.timeout)

    def _expire(self, strand: Strand, jobs: StrandJobs) -> None:
        """Cancel the first job of a strand and set the next head from the rows read, which saves a query."""
        live = read_live(jobs.take())
        move(self._tx, live, stopped(live.job, State.CANCELLED, because(Because.EXPIRED), self._tx.now))
        strand.head = jobs.position() if strand.ready else None
        strand.is_head_stale = False

    def _tenant_heap(self, queue: str, *, only_idle: bool) -> TenantHeap:
        found = self._tenant_heaps.get((queue, only_idle))
        if found is None:
            found = TenantHeap(
                self._tx, queue, self._prefetch, only_idle=only_idle, only_tenant=self._only_tenant
            )
            self._tenant_heaps[queue, only_idle] = found
        return found

    def _strand_heap(self, tenant_queue: TenantQueue) -> StrandHeap:
        found = self._strand_heaps.get(tenant_queue.id)
        if found is None:
            found = self._strand_heaps[tenant_queue.id] = StrandHeap(self._tx, tenant_queue, self._prefetch)
        return found

    def _fill_gates(self, unpark: UnparkPass, tenants: TenantHeap) -> bool:
        """Fill gates again: a strand unparked for a free slot may be blocked by another limit (S43)."""
        is_any_ready = False
        for strand in unpark.fill_gates():
            if strand.tenant_queue.is_ready:
                is_any_ready = True
                tenants.push(strand.tenant_queue)
            strands = self._strand_heaps.get(strand.tenant_queue.id)
            if strands is not None:
                strands.push(strand)
        self._flush()
        return is_any_ready


def promote_due(tx: Transaction, queue: str) -> int:
    """Make due delayed jobs of a queue ready, earliest first, at most `MAX_DUE`; return how many."""
    rows = all_rows(tx.db, _SQL.due, (queue, tx.now, MAX_DUE))
    for row in rows:
        live = read_live(row)
        move(tx, live, promoted(live.job))
    return len(rows)


def next_due(tx: Transaction, queues: Iterable[str]) -> Instant | None:
    """Return when time alone makes the next job of these queues claimable, or None."""
    times: list[Instant | None] = []
    for queue in queues:
        times.append(one_value(tx.db, _SQL.next_delayed, (queue,)))
        times.append(one_value(tx.db, _SQL.next_unparked, (queue,)))
        times += breaker_times(tx, queue)
        block = queue_block(tx, queue)
        if block is not None and one_value(tx.db, _SQL.has_ready, (queue,)):
            times.append(block.until)
    return min((time for time in times if time is not None), default=None)
