"""Look on at everything that is done to the store, and say what must not have been.

Believes neither the store's books nor the workers: it counts live claims, turns and tenants itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import UUID

import msgspec

from fairlane.lab import ledger
from fairlane.lab.ledger import Record
from fairlane.model.instants import Instant, Micros
from fairlane.model.job import Claim, NewJob, Settlement
from fairlane.model.lifecycle.states import CancelReply, Event, State
from fairlane.model.policy.limits import Rate
from fairlane.model.retry.revoke import RevokeHow
from fairlane.model.retry.stuck import stuck_limit
from fairlane.store.contract.claims import (
    ClaimReply,
    ClaimRequest,
    ReclaimReply,
    RenewReply,
    RenewRequest,
    RevokeReply,
    RevokeRequest,
    SettleReply,
    SettleRequest,
    StuckReply,
    StuckRequest,
)
from fairlane.store.contract.dead import ReprocessReply, ReprocessRequest, ReviewReply, ReviewRequest
from fairlane.store.contract.jobs import EnqueueReply, EnqueueRequest
from tests.simulation.fairness import FairnessCheck
from tests.simulation.guards import GuardsCheck
from tests.simulation.letters import LettersCheck
from tests.simulation.policies import Mirror
from tests.simulation.process import work_of
from tests.simulation.reach import reached
from tests.simulation.server import Answer, Watcher

Strand = tuple[str, str, str]
"""Queue, tenant and task."""

Order = tuple[int, bytes]
"""Where a job stands in its strand."""


class Live(msgspec.Struct):
    """A claim that nobody has ended."""

    claim: Claim
    worker: str
    lease_until: Instant
    gate: str | None

    @property
    def flow(self) -> tuple[str, str]:
        """Its queue and tenant."""
        return self.claim.job.queue, self.claim.job.tenant


class Watch(Watcher):
    """Sees every call at the store. Writes what an outside ledger would hold, and accuses at once."""

    def __init__(self, elapsed: Callable[[], Micros], clock: Callable[[], Instant]) -> None:
        """Begin with an empty store."""
        self.records: list[Record] = []
        self.wrong: list[str] = []
        self.policies = Mirror()
        self.sent: dict[UUID, str] = {}
        self.ready: Callable[[str], dict[str, int]] = lambda _: {}
        self.head: Callable[[Strand], Order | None] = lambda _: None
        self.is_well: Callable[[str], bool] = lambda _: False
        self.started: set[tuple[UUID, int]] = set()
        self._fairness = FairnessCheck()
        self._elapsed = elapsed
        self._clock = clock
        self._live: dict[UUID, Live] = {}
        self._held: Counter[tuple[str, str]] = Counter()
        self._gates: Counter[str] = Counter()
        self._last_fence: dict[UUID, int] = {}
        self._attempts: dict[tuple[UUID, int], int] = {}
        self._waits: Counter[Micros] = Counter()
        self._ready: dict[str, dict[str, int]] = {}
        self._paces: dict[str, tuple[Rate, Instant]] = {}
        self._letters = LettersCheck()
        self.guards = GuardsCheck(self.policies, clock, elapsed, self._fence_of)
        self.is_clock_set_back = False

    # ── who calls ─────────────────────────────────────────────────────────────

    def before(self, facet: str, verb: str, request: Any) -> None:
        """Note who had ready jobs before a claim."""
        claim = request.claim if verb == "settle" else request if verb == "claim" else None
        if claim is not None:
            self._ready = {
                queue_request.queue: self.ready(queue_request.queue) for queue_request in claim.queue_requests
            }

    def after(self, facet: str, verb: str, request: Any, answer: Answer) -> None:
        """Judge one call."""
        value, error = answer
        if error is not None:
            return
        hear = _HEARERS.get(verb) if facet in _JUDGED else None
        if hear is not None:
            hear(self, request, value)
        elif facet == "policies" and self.policies.note(verb, request):
            self._fairness.restart()
        self.wrong += self.guards.heard(facet, verb, request, value)
        tenant = getattr(request, "scope", None) and request.scope.tenant
        if tenant is not None and facet in _JUDGED:
            self._check_scope(facet, verb, tenant, value)

    def forgot(self, request: Any, answer: Any) -> None:
        """Let go of claims that the store has lost with its memory (S36)."""
        now = self._elapsed()
        self.records.append(ledger.Outage(at=now, until=1 << 62))
        self._fairness.restart()
        self._paces.clear()
        for claim in answer.claims if isinstance(answer, ClaimReply) else ():
            self._end(claim.job.id)
            self.guards.forgot(claim)

    def _accuse(self, story: str) -> None:
        self.wrong.append(story)

    def _fence_of(self, id: UUID) -> int | None:
        """Return under which fence somebody has a claim of a job; None if nobody has."""
        live = self._live.get(id)
        return None if live is None else live.claim.fence

    # ── enqueues ──────────────────────────────────────────────────────────────

    def sending(self, jobs: tuple[NewJob, ...]) -> None:
        """Write down what may come to be, as an enqueuer does who can be killed in its call."""
        now = self._elapsed()
        is_batch = len(jobs) > 1 and not any(job.idempotency_key or job.dedup_key for job in jobs)
        batch = str(jobs[0].id) if is_batch else None
        for job in jobs:
            self.sent[job.id] = job.tenant
            line = work_of(str(job.id), job.tenant, job.queue, job.task)
            self.records.append(ledger.Attempted(**line, at=now, key=job.idempotency_key, batch=batch))

    def _enqueued(self, request: EnqueueRequest, reply: EnqueueReply) -> None:
        for asked, got in zip(request.jobs, reply.enqueued, strict=False):
            job = got.job
            if (job.tenant, job.task) != (asked.tenant, asked.task):
                self._accuse(f"an enqueue of {asked.tenant}/{asked.task} got job {job.id} of {job.tenant}")
            if got.is_created and job.id != asked.id:
                self._accuse(f"job {asked.id} came to be as {job.id}")

    # ── claims ────────────────────────────────────────────────────────────────

    def _claimed(self, request: ClaimRequest, reply: ClaimReply) -> None:
        last: dict[Strand, Order] = {}
        for claim in reply.claims:
            self.wrong += self.guards.claimed(claim, reply)
            self._claim(claim, request.worker)
            job = claim.job
            strand, order = (job.queue, job.tenant, job.task), (job.sort_key, job.id.bytes)
            if order < last.setdefault(strand, order):
                self._accuse(f"job {job.id} came after one that it goes before")
            last[strand] = order
        for strand, order in last.items():
            head = self.head(strand)
            if head is not None and head < order:
                self._accuse(f"a job of {strand} was claimed before one that goes first")
        now = self._clock()
        for queue in dict.fromkeys(queue_request.queue for queue_request in request.queue_requests):
            served = [claim.job.tenant for claim in reply.claims if claim.job.queue == queue]
            if request.headroom or not self.policies.counts_jobs(queue, now):
                self._fairness.restart(queue)
                continue
            backlogged = {
                tenant
                for tenant, number in self.ready(queue).items()
                if number
                and self._ready.get(queue, {}).get(tenant)
                and self.policies.is_free(queue, tenant, now)
            }
            strides = {tenant: self.policies.stride(tenant, now) for tenant in {*backlogged, *served}}
            self.wrong += self._fairness.served(queue, served, backlogged, strides)

    def _claim(self, claim: Claim, worker: str) -> None:
        job, now = claim.job, self._clock()
        id = job.id
        if id in self._live:
            self._accuse(f"job {id} was claimed by {worker} while {self._live[id].worker} has a live claim")
            self._end(id)
        if claim.fence == self._last_fence.get(id) or (
            claim.fence < self._last_fence.get(id, 0) and not self.is_clock_set_back
        ):
            last = self._last_fence[id]
            self._accuse(f"fence {claim.fence} of job {id} does not grow, the last was {last}")
        if self.sent.get(id) != job.tenant:
            self._accuse(f"job {id} of {job.tenant} was claimed, but nobody enqueued it there")
        if job.expires_at is not None and job.expires_at <= now:
            self._accuse(f"job {id} was claimed after its expiry")
        if self.policies.is_paused(job.queue, job.tenant, job.task, now):
            self._accuse(f"job {id} was claimed although {job.queue}, {job.tenant} or {job.task} is paused")
        self._check_pace(claim, now)
        self._last_fence[id] = claim.fence
        self._attempts[id, claim.fence] = job.attempt
        gate, room = self.policies.gate(job.task, now)
        live = Live(claim, worker, claim.lease_until, gate)
        self._live[id] = live
        self._held[live.flow] += 1
        limit = self.policies.limits(job.queue, job.tenant, now).running
        if limit is not None and self._held[live.flow] > limit:
            held = self._held[live.flow]
            self._accuse(f"{held} claims of {job.tenant} in {job.queue} are held, the limit is {limit}")
        if gate is not None:
            self._gates[gate] += 1
            if room is not None and self._gates[gate] > room:
                self._accuse(f"{self._gates[gate]} claims hold gate {gate}, which has room for {room}")

    def _check_pace(self, claim: Claim, now: Instant) -> None:
        """Hold the starts of a task to its rate, as long as that is not changed (S44)."""
        task, rate = claim.job.task, self.policies.rate(claim.job.task, now)
        if rate is None:
            self._paces.pop(task, None)
            return
        before, next_allowed_at = self._paces.get(task, (rate, 0))
        next_allowed_at = next_allowed_at if before == rate else 0
        if rate.free_at(next_allowed_at) > now and not self.is_clock_set_back:
            self._accuse(f"job {claim.job.id} of {task} was started sooner than {rate} allows")
        self._paces[task] = (rate, rate.start(next_allowed_at, now))

    def _end(self, id: UUID) -> Live | None:
        live = self._live.pop(id, None)
        if live is not None:
            self._held[live.flow] -= 1
            if live.gate is not None:
                self._gates[live.gate] -= 1
        return live

    def _settled(self, request: SettleRequest, reply: SettleReply) -> None:
        asked = {one.id: one for one in request.settlements}
        now = self._elapsed()
        self.guards.settled(request)
        self.records += [ledger.Stale(job=str(id), fence=asked[id].fence, at=now) for id in reply.stale]
        for one in reply.settled:
            self._settle(asked[one.id], request.worker, one.state)
        if request.claim is not None and reply.claimed is not None:
            self._claimed(request.claim, reply.claimed)

    def _settle(self, asked: Settlement, worker: str, state: State) -> None:
        live = self._live.get(asked.id)
        if live is None or (live.claim.fence, live.worker) != (asked.fence, worker):
            self._accuse(
                f"a settlement of job {asked.id} by {worker} under fence {asked.fence} was accepted, "
                f"but {'nobody' if live is None else live.worker} holds it"
            )
        if live is not None:
            self._end(asked.id)
        if live is not None and asked.is_unstarted and state is State.READY:
            self._fairness.returned(*live.flow, self.policies.stride(live.flow[1], self._clock()))
            if (asked.id, asked.fence) in self.started:
                self._accuse(f"job {asked.id} came back as unstarted under fence {asked.fence}, but it ran")
        attempt = self._attempts.get((asked.id, asked.fence), 1)
        self.records.append(
            ledger.Settled(
                job=str(asked.id),
                attempt=attempt,
                fence=asked.fence,
                event=asked.event,
                state=state,
                at=self._elapsed(),
                unstarted=asked.is_unstarted,
                spent=asked.spent,
            )
        )
        failure = asked.failure
        is_plain = failure is not None and failure.error_type == "RuntimeError"
        if asked.event is Event.RETRY and asked.failures == 1 and is_plain:
            self._waits[asked.delay] += 1

    def _renewed(self, request: RenewRequest, reply: RenewReply) -> None:
        self.guards.renewed(request, reply.stale)
        for one in request.renewals:
            live = self._live.get(one.id)
            is_mine = live is not None and (live.claim.fence, live.worker) == (one.fence, request.worker)
            if is_mine == (one.id in reply.stale):
                word = "stale" if is_mine else "good"
                self._accuse(f"a renewal of job {one.id} under fence {one.fence} was called {word}")
            elif live is not None and is_mine:
                live.lease_until = reply.lease_until

    def _reclaimed(self, _: Any, reply: ReclaimReply) -> None:
        now = self._clock()
        for lost in reply.lost:
            self.guards.budgets.abandoned(lost.id, lost.fence)
            live = self._end(lost.id)
            if live is None or live.claim.fence != lost.fence:
                self._accuse(f"job {lost.id} was reclaimed under fence {lost.fence}, which is not live")
            elif live.lease_until > now:
                early = live.lease_until - now
                self._accuse(f"job {lost.id} was reclaimed {early} us before its lease ended")
            elif self.is_well(live.worker) and (lost.id, lost.fence) in self.started:
                self._accuse(f"job {lost.id} was reclaimed from {live.worker}, which is well (S38)")
            record = ledger.Reclaimed(
                job=str(lost.id), fence=lost.fence, state=lost.state, at=self._elapsed()
            )
            self.records.append(record)

    def _stuck(self, request: StuckRequest, reply: StuckReply) -> None:
        now = self._clock()
        for stuck in reply.stuck:
            live = self._end(stuck.id)
            if live is None or live.claim.fence != stuck.fence:
                self._accuse(f"job {stuck.id} was stuck under fence {stuck.fence}, which is not live")
                continue
            limit = stuck_limit(live.claim.job)
            if limit is None or stuck.started_at + limit > now or stuck.started_at < request.started_after:
                self._accuse(f"job {stuck.id} was taken back as stuck before its limit")
            if live.lease_until <= now:
                self._accuse(f"job {stuck.id} was taken back as stuck, but its worker is silent (S31)")
            event = Event.RETRY if stuck.state is State.DELAYED else Event.STUCK
            self._taken(stuck.id, stuck.fence, event, stuck.state)

    def _revoked(self, request: RevokeRequest, reply: RevokeReply) -> None:
        for one in reply.jobs:
            if one.answer != "revoked":
                continue
            live = self._end(one.id)
            if live is None:
                if (request.how, one.state) != ("dead", State.DEAD):
                    self._accuse(f"job {one.id} was revoked ({request.how}), but nobody has a claim of it")
                self._withdraw([one.id], one.state)
                continue
            if live.claim.job.at_most_once and request.how != "dead":
                self._accuse(f"job {one.id} may run once and was revoked to run again (S72)")
            self._taken(one.id, live.claim.fence, _REVOKED[request.how], one.state)

    def _taken(self, id: UUID, fence: int, event: Event, state: State) -> None:
        """Write down that a claim ended without its worker."""
        self.guards.budgets.abandoned(id, fence)
        attempt = self._attempts.get((id, fence), 1)
        now = self._elapsed()
        self.records.append(
            ledger.Settled(job=str(id), attempt=attempt, fence=fence, event=event, state=state, at=now)
        )

    # ── callers ───────────────────────────────────────────────────────────────

    def _cancelled(self, _: Any, replies: dict[UUID, CancelReply]) -> None:
        done = [id for id, reply in replies.items() if reply is CancelReply.CANCELLED]
        self._withdraw(done, State.CANCELLED)

    def _condemned(self, _: Any, moved: tuple[UUID, ...]) -> None:
        self._withdraw(list(moved), State.DEAD)

    def _withdraw(self, ids: list[UUID], state: State) -> None:
        now = self._elapsed()
        self.records += [ledger.Withdrawn(job=str(id), state=state, at=now) for id in ids]

    def _check_scope(self, facet: str, verb: str, tenant: str, value: Any) -> None:
        """Hold every answer under the scope of one tenant to that tenant."""
        foreign = {id for id in reached(facet, verb, value) if self.sent.get(id, tenant) != tenant}
        if foreign:
            self._accuse(f"{verb} as {tenant} reached {len(foreign)} jobs of others")

    def _reviewed(self, request: ReviewRequest, replies: tuple[ReviewReply, ...]) -> None:
        self.wrong += self._letters.reviewed(request.action, replies)

    def _reprocessed(self, request: ReprocessRequest, replies: tuple[ReprocessReply, ...]) -> None:
        self.wrong += self._letters.reprocessed(request, replies)

    # ── the end ───────────────────────────────────────────────────────────────

    def finish(self) -> None:
        """Judge what only the whole run shows."""
        if self._waits.total() >= 3 and len(self._waits) == 1:
            self._accuse(f"{self._waits.total()} first retries all wait {next(iter(self._waits))} us")
        if self._live:
            self._accuse(f"{len(self._live)} claims are still live")


_JUDGED = frozenset({"claims", "jobs", "dead"})

_REVOKED: dict[RevokeHow, Event] = {"retry": Event.RETRY, "dead": Event.FAIL, "return": Event.HAND_BACK}

_HEARERS: dict[str, Callable[[Watch, Any, Any], None]] = {
    "enqueue": Watch._enqueued,
    "claim": Watch._claimed,
    "settle": Watch._settled,
    "renew": Watch._renewed,
    "reclaim": Watch._reclaimed,
    "take_stuck": Watch._stuck,
    "revoke": Watch._revoked,
    "cancel": Watch._cancelled,
    "condemn": Watch._condemned,
    "review": Watch._reviewed,
    "reprocess": Watch._reprocessed,
}
