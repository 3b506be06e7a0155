"""The claims facet of the oracle: the fair order, spelled out one job at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from fairlane.model.errors import Unsupported
from fairlane.model.guards.breaker import opens_at
from fairlane.model.instants import SECOND, Instant
from fairlane.model.job import Claim, JobRecord, NewJob, Settlement
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.facts import deaths, stuck
from fairlane.model.lifecycle.record_changes import claimed, new_record, promoted, settled, stopped
from fairlane.model.lifecycle.record_changes import lost as taken_back
from fairlane.model.lifecycle.states import (
    WAITING,
    Because,
    State,
    because,
    is_expired,
)
from fairlane.model.policy.budget import Account, BudgetRules, decide_start, room_at
from fairlane.model.policy.limits import Rate, is_below
from fairlane.model.policy.overrides import EVERY, Subject, SubjectKind
from fairlane.model.retry.decision import lose_lease, reconcile
from fairlane.model.retry.revoke import answer_revoke, settle_revoked
from fairlane.model.retry.stuck import is_stuck, settle_stuck
from fairlane.model.scheduling.fairness import FIRST_ESTIMATE, charge, correction, learn, refund
from fairlane.model.scheduling.look_ahead import may_be_ahead
from fairlane.model.scope import Scope
from fairlane.store.breaker_changes import line_key, open_breakers
from fairlane.store.contract.claims import (
    ClaimReply,
    ClaimRequest,
    ExpireReply,
    LostClaim,
    PassRequest,
    PromoteReply,
    ReclaimReply,
    ReclaimRequest,
    RenewReply,
    RenewRequest,
    RevokedJob,
    RevokeReply,
    RevokeRequest,
    SettledJob,
    SettleReply,
    SettleRequest,
    StuckReply,
    StuckRequest,
    WorkerRequest,
    stuck_claim,
)
from fairlane.store.contract.jobs import Why
from fairlane.store.contract.registry import LIVE_WITHIN
from fairlane.store.contract.request import check_serves_all
from tests.oracle.audit import Audit
from tests.oracle.books import Books, ClaimState, Flow, Parked, Strand, order_of, strand_of
from tests.oracle.breakers import breaker_block, not_closed, take_permits
from tests.oracle.core import Core
from tests.oracle.waking import WakePass, gate_room, line_of

CUT: Final = new_record(NewJob(id=UUID(int=0), tenant="", queue="", task="", payload=b"", checksum=0), now=0)
"""No job: the next one may not be claimed ahead."""

_NOBODY = ClaimRequest(scope=Scope.all(), worker="", lease=SECOND, queue_requests=(), total=1)


class OracleClaims:
    """Jobs as workers and duties move them."""

    concurrent_calls: Final = 2
    """More than one, as with a server: the effects of concurrent calls must show here, too."""

    def __init__(self, core: Core) -> None:
        """Share the state with the other facets."""
        self._core = core

    async def claim(self, request: ClaimRequest) -> ClaimReply:
        check_serves_all(request)
        books, now = self._core.books, self._core.now()
        wakings: dict[str, WakePass] = {}
        claims: list[Claim] = []
        is_cut = False
        told: list[NewEntry] = []
        for queue_request in request.queue_requests:
            if len(claims) >= request.total or is_cut:
                break
            if queue_request.queue not in wakings:
                wakings[queue_request.queue] = make_ready(books, queue_request.queue, now)
            taken = 0
            while taken < queue_request.limit and len(claims) < request.total:
                left = request.total - len(claims)
                job = claim_one(
                    books,
                    queue_request.queue,
                    now,
                    wakings[queue_request.queue],
                    request,
                    newcomers=left <= request.headroom,
                    is_ahead=left <= request.ahead,
                    told=told,
                )
                if job is None:
                    break
                if job is CUT:
                    is_cut = True
                    break
                assert job.lease_until is not None
                is_over = books.budget_of(job.task, now) is not None
                is_over = is_over and (job.id, job.fence) not in books.budgets.held
                claims.append(Claim(job, job.fence, job.lease_until, is_over))
                taken += 1
        self._core.append("events", *told)
        permits = tuple(one.job.id for one in claims if books.claim_states[one.job.id].has_permit)
        named = open_breakers(books.breakers, now) if claims and request.names_breakers else None
        if len(claims) >= request.total:
            return ClaimReply(tuple(claims), permits=permits, open_breakers=named)
        is_partial = any(waking.is_partial for waking in wakings.values())
        due = next_due(books, set(wakings), now)
        return ClaimReply(tuple(claims), due, is_partial, is_cut, permits, named)

    def _held(self, scope: Scope, worker: str, id: UUID, fence: int) -> JobRecord | None:
        job = self._core.books.jobs.get(id)
        if job is None or not scope.covers(job.tenant):
            return None
        matches = job.state is State.RUNNING and job.fence == fence and job.worker == worker
        return job if matches else None

    async def renew(self, request: RenewRequest) -> RenewReply:
        books, now = self._core.books, self._core.now()
        stale, asked = [], []
        for renewal in request.renewals:
            job = self._held(request.scope, request.worker, renewal.id, renewal.fence)
            if job is None:
                stale.append(renewal.id)
                continue
            progress = renewal.progress or job.progress
            metadata = job.metadata if renewal.metadata is None else renewal.metadata
            books.change(job, lease_until=now + request.lease, progress=progress, metadata=metadata)
            _charge_time(books, job, now, is_final=False)
            if renewal.spent:
                self._core.report_spend(request.scope, job.id, job.fence, renewal.spent, is_over=False)
            if job.is_cancel_asked:
                asked.append(job.id)
        return RenewReply(tuple(stale), tuple(asked), now + request.lease)

    async def settle(self, request: SettleRequest) -> SettleReply:
        if request.claim is not None:
            check_serves_all(request.claim)
        ended, stale = [], []
        for settlement in request.settlements:
            key = (settlement.id, settlement.fence)
            self._core.report_spend(request.scope, *key, settlement.spent, is_over=True)
            job = self._held(request.scope, request.worker, settlement.id, settlement.fence)
            if job is None:
                stale.append(settlement.id)
            else:
                ended.append(self._settle(job, settlement, request.attempts_kept))
        self._tell_deaths(ended)
        done = [SettledJob(job.id, job.state) for job in ended]
        claimed = None if request.claim is None else await self.claim(request.claim)
        return SettleReply(tuple(done), tuple(stale), claimed)

    def _tell_deaths(self, ended: list[JobRecord]) -> None:
        self._core.append("events", *deaths(job for job in ended if job.state is State.DEAD))

    def _settle(self, job: JobRecord, asked: Settlement, kept: int) -> JobRecord:
        books, now = self._core.books, self._core.now()
        settlement = reconcile(job, asked, now)
        if settlement.is_unstarted:
            _refund(books, job, now)
        else:
            _charge_time(books, job, now, is_final=True)
        if settlement.outcome in {"succeeded", "failed"} and books.claim_states[job.id].charged is not None:
            seen, name = now - (job.started_at or now), (job.queue, job.task)
            books.estimates[name] = learn(books.estimates.get(name, FIRST_ESTIMATE), seen)
        return self._core.end_attempt(settled(job, settlement, now, kept))

    async def settle_in(self, connection: Any, request: SettleRequest) -> SettleReply:
        """Refuse: memory has no transactions."""
        raise Unsupported("the oracle has no connections; for another database use the outbox")

    async def cancel_asked(self, request: WorkerRequest) -> tuple[UUID, ...]:
        jobs = self._core.books.jobs.values()
        return tuple(
            job.id
            for job in jobs
            if job.worker == request.worker and job.is_cancel_asked and request.scope.covers(job.tenant)
        )

    async def reclaim(self, request: ReclaimRequest) -> ReclaimReply:
        check_serves_all(request)
        books, now = self._core.books, self._core.now()
        by = now if request.expired_by is None else min(now, request.expired_by)
        due = [job for job in books.jobs.values() if job.lease_until is not None and job.lease_until <= by]
        due.sort(key=lambda job: (job.lease_until, job.id.bytes))
        lost, ended = [], []
        for job in due[: request.limit]:
            loss = lose_lease(job)
            self._core.abandon_budget(job)
            _charge_time(books, job, now, is_final=True)
            ended.append(self._core.end_attempt(taken_back(job, loss, now, request.attempts_kept)))
            lost.append(LostClaim(job.id, job.tenant, job.queue, str(job.worker), job.fence, loss.state))
        self._tell_deaths(ended)
        is_idle = not due and all(job.lease_until is None for job in books.jobs.values())
        return ReclaimReply(tuple(lost), len(due) > request.limit, is_idle)

    async def take_stuck(self, request: StuckRequest) -> StuckReply:
        check_serves_all(request)
        books, now = self._core.books, self._core.now()
        found = [job for job in books.jobs.values() if is_stuck(job, now)]
        found = [job for job in found if (job.started_at or 0) >= request.started_after]
        found.sort(key=lambda job: (job.started_at, job.id.bytes))
        taken, ended = [], []
        for job in found[: request.limit]:
            _charge_time(books, job, now, is_final=True)
            self._core.abandon_budget(job)
            settlement = reconcile(job, settle_stuck(job, now), now)
            after = self._core.end_attempt(settled(job, settlement, now, request.attempts_kept))
            taken.append(stuck_claim(job, after.state))
            ended.append(after)
            self._core.append("events", stuck(job, after.state))
        self._tell_deaths(ended)
        return StuckReply(tuple(taken), len(found) > request.limit)

    async def revoke(self, request: RevokeRequest) -> RevokeReply:
        answers, ended = [], []
        for id in dict.fromkeys(request.ids):
            job = self._core.books.jobs.get(id)
            if job is None or not request.scope.covers(job.tenant):
                continue
            answer = answer_revoke(job, request.how)
            after = self._revoke(job, request) if answer == "revoked" else job
            if answer == "revoked":
                ended.append(after)
            Audit(self._core, request.operation).changed(job, after)
            answers.append(RevokedJob(id, answer, after.state))
        self._tell_deaths(ended)
        return RevokeReply(tuple(answers))

    def _revoke(self, job: JobRecord, request: RevokeRequest) -> JobRecord:
        books, now = self._core.books, self._core.now()
        if job.state in WAITING:
            reason = because(Because.CONDEMNED, request.reason)
            return books.save(stopped(job, State.DEAD, reason, now))
        settlement = settle_revoked(job, request.how, request.delay, request.reason)
        _charge_time(books, job, now, is_final=True)
        self._core.abandon_budget(job)
        return self._core.end_attempt(
            settled(job, reconcile(job, settlement, now), now, request.attempts_kept)
        )

    async def promote(self, request: PassRequest) -> PromoteReply:
        check_serves_all(request)
        books, now = self._core.books, self._core.now()
        due = _due(books, now)
        for job in due[: request.limit]:
            _promote(books, job)
            self._core.hint({job.queue})
        is_partial = len(due) > request.limit
        queues = {job.queue for job in books.jobs.values()}
        for queue in queues:
            waking = WakePass(books, queue, now)
            waking.run()
            is_partial = is_partial or waking.is_partial
            if waking.has_woken:
                self._core.hint({queue})
        return PromoteReply(len(due[: request.limit]), next_due(books, queues, now), is_partial)

    async def expire(self, request: PassRequest) -> ExpireReply:
        check_serves_all(request)
        books, now = self._core.books, self._core.now()
        past = [
            job for job in books.jobs.values() if job.state in WAITING and is_expired(job.expires_at, now)
        ]
        past.sort(key=lambda job: (job.expires_at, job.id.bytes))
        for job in past[: request.limit]:
            _expire(books, job, now)
        return ExpireReply(len(past[: request.limit]), len(past) > request.limit)


# ── the fair order ────────────────────────────────────────────────────────────


def make_ready(books: Books, queue: str, now: Instant, only: str | None = None) -> WakePass:
    """Make ready what time, a changed policy or a free gate allows in a queue."""
    for due in _due(books, now, queue):
        _promote(books, due)
    waking = WakePass(books, queue, now, only)
    waking.run()
    return waking


def claim_one(
    books: Books,
    queue: str,
    now: Instant,
    waking: WakePass,
    request: ClaimRequest = _NOBODY,
    *,
    newcomers: bool = False,
    is_ahead: bool = False,
    only: str | None = None,
    told: list[NewEntry] | None = None,
) -> JobRecord | None:
    """Claim the next job, or nothing; `CUT` if it may not be claimed ahead.

    Parks tenants and strands that may not run now (S42).
    """
    if _queue_block(books, queue, now) is not None:
        return None
    while True:
        flow = _next_flow(books, queue, newcomers=newcomers, only=only)
        if flow is None:
            if waking.fill_gates():
                continue
            return None
        block = _flow_block(books, flow, now)
        if block is not None:
            books.park(flow, block)
            continue
        strand = min(
            (one for one in books.strands(flow) if one not in books.parked),
            key=lambda one: order_of(books.head(one)),
        )
        block = _strand_block(books, strand, now)
        if block is not None:
            if block.reason == "budget":
                _find_no_room(books, strand, now, told)
            # At a breaker it is woken from the line: with a time, all in it would wake at once.
            books.park(strand, replace(block, until=None) if block.reason == "breaker" else block)
            continue
        job = books.head(strand)
        if is_expired(job.expires_at, now):
            _expire(books, job, now)
            continue
        rules = books.task_rules(job.task, now)
        has_gate = rules.gate is not None or rules.budget is not None
        has_gate = has_gate or bool(not_closed(books, job.task, job.tenant, now))
        has_rate = any(_rates(books, strand, now))
        if is_ahead and not may_be_ahead(job, has_gate=has_gate, has_rate=has_rate):
            return CUT
        return _serve(books, flow, job, request, now, told)


def _next_flow(books: Books, queue: str, *, newcomers: bool, only: str | None) -> Flow | None:
    ready = [
        flow
        for flow, work in books.tenant_clocks.items()
        if flow[0] == queue
        and work.is_ready
        and only in {None, flow[1]}
        and not (newcomers and books.running(*flow))
    ]
    key = books.tenant_clocks
    return min(ready, key=lambda flow: (key[flow].vt, key[flow].ready_since), default=None)


def _serve(
    books: Books,
    flow: Flow,
    job: JobRecord,
    request: ClaimRequest,
    now: Instant,
    told: list[NewEntry] | None,
) -> JobRecord:
    queue, tenant = flow
    books.floors[queue] = books.virtual_now(queue)
    cost = None
    if books.queue_rules(queue, now).cost == "seconds":
        cost = books.estimates.get((queue, job.task), FIRST_ESTIMATE)
        if job.timeout is not None:
            cost = min(cost, job.timeout)
    books.tenant_clocks[flow].vt += charge(books.stride(tenant, now), SECOND if cost is None else cost)
    for name, rate in _rates(books, strand_of(job), now):
        carried = rate.next_allowed_from(*books.next_allowed.get(name, ("", 0)))
        books.next_allowed[name] = (rate.rate_id, rate.start(carried, now))
    gate = books.task_rules(job.task, now).gate
    if gate is not None:
        books.gate_used[gate] += 1
    if job.dedup_until == "started":
        books.free_dedup(job)
    has_permit = take_permits(books, job, now)
    books.claim_states[job.id] = ClaimState(gate, cost, has_permit)
    job = claimed(job, request.worker, request.lease, now)
    budget = books.budget_of(job.task, now)
    if budget is not None:
        if decide_start(budget[1], _account(books, budget, tenant, now)) == "start":
            books.budgets.reserve(*budget, job, now)
        else:
            _find_no_room(books, strand_of(job), now, told, is_fatal=True)
    return books.save(job)


def _account(books: Books, budget: tuple[str, BudgetRules], tenant: str, now: Instant) -> Account:
    return books.budgets.account(budget[0], tenant if budget[1].per_tenant else "", now)


def _find_no_room(
    books: Books, strand: Strand, now: Instant, told: list[NewEntry] | None, *, is_fatal: bool = False
) -> None:
    """Note that a job of this strand found no room in its budget."""
    budget = books.budget_of(strand[2], now)
    assert budget is not None
    account = _account(books, budget, strand[1], now)
    note = books.budgets.tell if is_fatal else books.budgets.park
    found = note(budget[0], strand[1] if budget[1].per_tenant else "", account, budget[1])
    if told is not None:
        told += found


# ── what may not run now ──────────────────────────────────────────────────────


def _rates(books: Books, strand: Strand, now: Instant) -> Iterator[tuple[Subject | Flow, Rate]]:
    """Return every rate that a start of this strand counts against."""
    queue, tenant, task = strand
    task_rules = books.task_rules(task, now)
    gate = task_rules.gate
    named: list[tuple[Subject | Flow, Rate | None]] = [
        (Subject(SubjectKind.QUEUE, queue), books.queue_rules(queue, now).rate),
        ((queue, tenant), books.limits(queue, tenant, now).rate),
        (Subject(SubjectKind.TASK, task), task_rules.rate),
    ]
    if gate is not None:
        named.append((Subject(SubjectKind.GATE, gate), books.gate_rules(gate, now).rate))
    return ((name, rate) for name, rate in named if rate is not None)


def _rate_block(
    books: Books, name: Subject | Flow, rate: Rate | None, layers: tuple[Subject, ...], now: Instant
) -> Parked | None:
    """Return when the rate allows a start, or an override ends and another rate may apply."""
    free_at = now
    if rate is not None:
        free_at = rate.free_at(rate.next_allowed_from(*books.next_allowed.get(name, ("", 0))))
    if free_at <= now:
        return None
    return Parked("rate", layers[0], min([free_at, *books.ends(layers, now)]))


def _pause_block(books: Books, subject: Subject, now: Instant) -> Parked | None:
    hold = books.hold(books.paused, subject, now)
    return None if hold is None else Parked("paused", subject, hold.until)


def _queue_block(books: Books, queue: str, now: Instant) -> Parked | None:
    subject = Subject(SubjectKind.QUEUE, queue)
    pause = _pause_block(books, subject, now)
    return pause or _rate_block(books, subject, books.queue_rules(queue, now).rate, (subject,), now)


def _flow_block(books: Books, flow: Flow, now: Instant) -> Parked | None:
    queue, tenant = flow
    subject = Subject(SubjectKind.TENANT, tenant)
    layers = (subject, Subject(SubjectKind.TENANT, EVERY), Subject(SubjectKind.QUEUE, queue))
    limits = books.limits(queue, tenant, now)
    pause = _pause_block(books, subject, now)
    if pause is not None:
        return pause
    if not is_below(books.running(queue, tenant), limits.running):
        return Parked("running_limit", subject, min(books.ends(layers, now), default=None))
    return _rate_block(books, flow, limits.rate, layers, now)


def _strand_block(books: Books, strand: Strand, now: Instant) -> Parked | None:
    task = Subject(SubjectKind.TASK, strand[2])
    rules = books.task_rules(task.name, now)
    block = _pause_block(books, task, now) or breaker_block(books, strand, now)
    block = block or _rate_block(books, task, rules.rate, (task,), now)
    if block is not None or rules.gate is None:
        return block or _budget_block(books, strand, now)
    gate = Subject(SubjectKind.GATE, rules.gate)
    if gate_room(books, gate.name, now) <= 0:
        return Parked("gate", gate, min(books.ends((gate,), now), default=None))
    block = _rate_block(books, gate, books.gate_rules(gate.name, now).rate, (gate,), now)
    return block or _budget_block(books, strand, now)


def _budget_block(books: Books, strand: Strand, now: Instant) -> Parked | None:
    budget = books.budget_of(strand[2], now)
    if budget is None:
        return None
    account = _account(books, budget, strand[1], now)
    if decide_start(budget[1], account) != "park":
        return None
    subject = Subject(SubjectKind.BUDGET, budget[0])
    ends = [room_at(account, now), *books.ends((subject,), now)]
    return Parked("budget", subject, min((end for end in ends if end is not None), default=None))


def next_due(books: Books, queues: set[str], now: Instant) -> Instant | None:
    """Return when time alone makes the next job of these queues claimable."""
    times: list[Instant | None] = [job.run_at for job in books.delayed.values() if job.queue in queues]
    for what, parked in books.all_parked():
        key = line_key(line_of(parked) or "")
        if what[0] in queues and key is not None:
            times.append(opens_at(books.breakers[key], now))
    times += [parked.until for what, parked in books.all_parked() if what[0] in queues]
    for queue in queues & {strand[0] for strand in books.ready}:
        block = _queue_block(books, queue, now)
        times.append(None if block is None else block.until)
    return min((time for time in times if time is not None), default=None)


def explain_ready(books: Books, job: JobRecord, now: Instant) -> Why:
    """Return what blocks a ready job, in the order of the contract."""
    strand = strand_of(job)
    subjects = (
        Subject(SubjectKind.QUEUE, job.queue),
        Subject(SubjectKind.TENANT, job.tenant),
        Subject(SubjectKind.TASK, job.task),
    )
    ahead = sum(
        order_of(books.jobs[id]) < order_of(job)
        for one in books.strands(strand[:2])
        for id in books.ready[one]
    )
    for subject in subjects:
        pause = _pause_block(books, subject, now)
        if pause is not None:
            return Why("paused", str(subject), pause.until, ahead)
    for block in (
        _queue_block(books, job.queue, now),
        _flow_block(books, strand[:2], now),
        _strand_block(books, strand, now),
    ):
        if block is not None:
            return Why(block.reason, str(block.subject), block.until, ahead)  # type: ignore[arg-type]
    is_served = any(
        job.queue in one.record.queues and now - one.beat_at <= LIVE_WITHIN for one in books.workers.values()
    )
    return Why("turn" if is_served else "no_worker", str(subjects[0]), None, ahead)


# ── small moves ───────────────────────────────────────────────────────────────


def _due(books: Books, now: Instant, queue: str | None = None) -> list[JobRecord]:
    found = [
        job for job in books.delayed.values() if job.run_at <= now and (queue is None or queue == job.queue)
    ]
    return sorted(found, key=lambda job: (job.run_at, job.id.bytes))


def _promote(books: Books, job: JobRecord) -> None:
    books.save(promoted(job))


def _expire(books: Books, job: JobRecord, now: Instant) -> None:
    books.save(stopped(job, State.CANCELLED, because(Because.EXPIRED), now))


def _refund(books: Books, job: JobRecord, now: Instant) -> None:
    """Give back what the claim has charged."""
    charged = books.claim_states[job.id].charged
    work = books.tenant_clocks[job.queue, job.tenant]
    work.vt = refund(work.vt, books.stride(job.tenant, now), SECOND if charged is None else charged)


def _charge_time(books: Books, job: JobRecord, now: Instant, *, is_final: bool) -> None:
    """Charge the actual time of an attempt; at a renewal only what exceeds the charge so far."""
    claim_state = books.claim_states[job.id]
    seen = now - (job.started_at or now)
    if claim_state.charged is None or (not is_final and seen <= claim_state.charged):
        return
    work = books.tenant_clocks[job.queue, job.tenant]
    work.vt += correction(books.stride(job.tenant, now), claim_state.charged, seen)
    claim_state.charged = seen
