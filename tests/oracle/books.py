"""The state of the oracle in plain dictionaries, and the operations that change it. Knows no verb."""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from uuid import UUID

import msgspec

from fairlane.model.duty_report import DutyReports
from fairlane.model.finished_job import FinishedJob
from fairlane.model.guards.breaker import BreakerState
from fairlane.model.instants import Instant, Micros
from fairlane.model.job import JobRecord
from fairlane.model.journal.entries import Entry, JournalName, PendingEntry
from fairlane.model.lifecycle.states import WAITING, State, is_finished
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import (
    DEFAULTS,
    EVERY,
    GateRules,
    Hold,
    Override,
    QueueRules,
    Rules,
    Subject,
    SubjectKind,
    TaskRules,
    TenantRules,
    is_active,
    limits_of,
    overlay,
)
from fairlane.model.review import ReviewRecord
from fairlane.model.scheduling.fairness import activate, stride, virtual_now
from fairlane.store.contract.breakers import BreakerKey
from fairlane.store.contract.registry import TaskView, WorkerView
from tests.oracle.budget_book import BudgetBook

Flow = tuple[str, str]
"""(queue, tenant): the unit of fairness."""

Strand = tuple[str, str, str]
"""(queue, tenant, task): the unit of parking."""


@dataclass(frozen=True)
class Parked:
    """Why a tenant or strand left the ready index, until when, and its place in the fair order then."""

    reason: str
    subject: Subject
    until: Instant | None
    vt: int = 0
    ready_since: int = 0


@dataclass
class TenantClock:
    """The virtual clock of one (queue, tenant)."""

    vt: int = 0
    ready_since: int = 0
    is_ready: bool = False
    parked: Parked | None = None


@dataclass
class ClaimState:
    """What a live claim has besides its job."""

    gate: str | None
    charged: Micros | None
    has_permit: bool = False


@dataclass
class Key:
    """An idempotency key and the job that has it."""

    id: UUID
    fingerprint: bytes
    state: State | None = None
    settled_at: Instant | None = None


@dataclass
class JournalBook:
    """One journal: entries without a number, entries with one, and what its duty remembers."""

    pending: list[PendingEntry] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    appended: int = 0
    last: int = 0
    revision: int = 0
    memory: bytes = b""


@dataclass
class Batch:
    """Jobs that were removed and are not archived yet."""

    jobs: list[FinishedJob] = field(default_factory=list)
    closed_at: Instant | None = None


@dataclass
class Books:
    """Everything that is stored. A job is written only by `save`."""

    jobs: dict[UUID, JobRecord] = field(default_factory=dict)
    delayed: dict[UUID, JobRecord] = field(default_factory=dict)
    reviews: dict[UUID, ReviewRecord] = field(default_factory=dict)
    journals: dict[JournalName, JournalBook] = field(
        default_factory=lambda: {"audit": JournalBook(), "events": JournalBook()}
    )
    batches: dict[int, Batch] = field(default_factory=dict)
    last_batch: int = 0
    counts: Counter[tuple[str, str, State]] = field(default_factory=Counter)
    ready: defaultdict[Strand, set[UUID]] = field(default_factory=lambda: defaultdict(set))
    tenant_clocks: defaultdict[Flow, TenantClock] = field(default_factory=lambda: defaultdict(TenantClock))
    parked: dict[Strand, Parked] = field(default_factory=dict)
    floors: Counter[str] = field(default_factory=Counter)
    sequence: int = 0
    next_allowed: dict[Subject | Flow, tuple[str, Instant]] = field(default_factory=dict)
    estimates: dict[tuple[str, str], Micros] = field(default_factory=dict)
    claim_states: dict[UUID, ClaimState] = field(default_factory=dict)
    gate_used: Counter[str] = field(default_factory=Counter)
    breakers: dict[BreakerKey, BreakerState] = field(default_factory=dict)
    keys: dict[tuple[str, str], Key] = field(default_factory=dict)
    dedup: dict[tuple[str, str, str], UUID] = field(default_factory=dict)
    declared: dict[Subject, Rules] = field(default_factory=dict)
    overrides: dict[Subject, Override] = field(default_factory=dict)
    paused: dict[Subject, Hold] = field(default_factory=dict)
    closed: dict[Subject, Hold] = field(default_factory=dict)
    workers: dict[str, WorkerView] = field(default_factory=dict)
    tasks: dict[str, TaskView] = field(default_factory=dict)
    budgets: BudgetBook = field(default_factory=BudgetBook)
    leads: dict[str, tuple[str, Instant]] = field(default_factory=dict)
    duty_reports: dict[str, DutyReports] = field(default_factory=dict)
    beat_at: Instant | None = None
    resumed_at: Instant | None = None

    def copy(self) -> Books:
        """Return a copy that can be changed independently, but for the journals; records are immutable."""
        other = copy.copy(self)
        for name in (
            "jobs",
            "delayed",
            "reviews",
            "counts",
            "parked",
            "floors",
            "next_allowed",
            "estimates",
            "claim_states",
            "gate_used",
            "breakers",
        ):
            setattr(other, name, copy.copy(getattr(self, name)))
        other.ready = defaultdict(set, {strand: set(ids) for strand, ids in self.ready.items()})
        other.tenant_clocks = defaultdict(
            TenantClock, {flow: copy.copy(one) for flow, one in self.tenant_clocks.items()}
        )
        other.keys = {key: copy.copy(one) for key, one in self.keys.items()}
        other.dedup = dict(self.dedup)
        other.budgets = self.budgets.copy()
        return other

    # ── jobs ──────────────────────────────────────────────────────────────────

    def save(self, job: JobRecord) -> JobRecord:
        """Write a job, with the counts, keys and ready index that follow from its state."""
        before = self.jobs.get(job.id)
        if before is not None and before.state is job.state is State.READY:
            self.jobs[job.id] = job  # only its place in the strand changes; a parked strand stays parked
            return job
        if before is not None:
            self._take_out(before)
        self.jobs[job.id] = job
        self.counts[job.tenant, job.queue, job.state] += 1
        if job.state is State.DELAYED:
            self.delayed[job.id] = job
        elif job.state is State.READY:
            self.ready[strand_of(job)].add(job.id)
        self.refresh_index((job.queue, job.tenant))
        if is_finished(job.state) and (before is None or not is_finished(before.state)):
            self._free_keys(job)
        return job

    def change(self, job: JobRecord, **values: object) -> JobRecord:
        """Change some fields of a job."""
        return self.save(msgspec.structs.replace(job, **values))

    def drop(self, job: JobRecord) -> None:
        """Remove a finished job."""
        self._take_out(job)
        del self.jobs[job.id]
        self.reviews.pop(job.id, None)

    def archive(self, finished: FinishedJob) -> None:
        """Add a job that is being removed to the open batch."""
        batch = self.batches.get(self.last_batch)
        if batch is None or batch.closed_at is not None:
            self.last_batch += 1
            batch = self.batches[self.last_batch] = Batch()
        batch.jobs = [one for one in batch.jobs if one.job.id != finished.job.id] + [finished]

    def forget_batches(self, tenant: str) -> None:
        """Remove a tenant's jobs from all batches."""
        for batch in self.batches.values():
            batch.jobs = [one for one in batch.jobs if one.job.tenant != tenant]

    def take_back(self, finished: FinishedJob) -> None:
        """Store a job that has ended elsewhere, or before: it holds no key."""
        job = finished.job
        self.jobs[job.id] = job
        self.counts[job.tenant, job.queue, job.state] += 1
        if finished.review is not None and finished.review != ReviewRecord():
            self.reviews[job.id] = finished.review

    def _take_out(self, job: JobRecord) -> None:
        key = (job.tenant, job.queue, job.state)
        self.counts[key] -= 1
        if not self.counts[key]:
            del self.counts[key]
        if job.state is State.DELAYED:
            del self.delayed[job.id]
        elif job.state is State.READY:
            strand = strand_of(job)
            self.ready[strand].discard(job.id)
            if not self.ready[strand]:
                del self.ready[strand]
                self.parked.pop(strand, None)

    def _free_keys(self, job: JobRecord) -> None:
        key = self.keys.get((job.tenant, job.idempotency_key))
        if key is not None and key.id == job.id:
            key.state, key.settled_at = job.state, job.settled_at
        self.free_dedup(job)

    def free_dedup(self, job: JobRecord) -> None:
        """Free a de-duplication key, if it is this job's."""
        if job.dedup_key is not None and self.dedup.get((job.tenant, job.task, job.dedup_key)) == job.id:
            del self.dedup[job.tenant, job.task, job.dedup_key]

    def waiting(self, queue: str, tenant: str | None = None) -> int:
        """Count delayed and ready jobs of a queue, of one tenant or of all."""
        if tenant is not None:
            return sum(self.counts[tenant, queue, state] for state in WAITING)
        return sum(n for (_, q, state), n in self.counts.items() if q == queue and state in WAITING)

    def running(self, queue: str, tenant: str) -> int:
        """Count running jobs of a tenant in a queue."""
        return self.counts[tenant, queue, State.RUNNING]

    def head(self, strand: Strand) -> JobRecord:
        """Return the first job of a strand."""
        return min((self.jobs[id] for id in self.ready[strand]), key=order_of)

    # ── fair order ─────────────────────────────────────────────────────────────────

    def strands(self, flow: Flow) -> Iterator[Strand]:
        """Return the strands of a flow that have ready jobs."""
        queue, tenant = flow
        return (one for one, ids in self.ready.items() if one[1] == tenant and one[0] == queue and ids)

    def is_in_index(self, flow: Flow) -> bool:
        """Whether a claim considers this tenant."""
        if self.tenant_clocks[flow].parked is not None:
            return False
        return any(strand not in self.parked for strand in self.strands(flow))

    def refresh_index(self, flow: Flow) -> None:
        """Add a flow to the ready index or remove it, by its jobs and parked strands (S41: activation)."""
        work = self.tenant_clocks[flow]
        has_ready = any(True for _ in self.strands(flow))
        if not has_ready:
            work.ready_since, work.parked = 0, None
        elif not work.ready_since:
            self.sequence += 1
            work.ready_since = self.sequence
        is_ready = self.is_in_index(flow)
        if is_ready and not work.is_ready:
            work.vt = activate(work.vt, self.virtual_now(flow[0]))
        work.is_ready = is_ready

    def virtual_now(self, queue: str) -> int:
        """Return V, the virtual time of a queue."""
        clocks = [work.vt for flow, work in self.tenant_clocks.items() if flow[0] == queue and work.is_ready]
        return virtual_now(self.floors[queue], clocks)

    def park(self, what: Flow | Strand, parked: Parked) -> None:
        """Remove a tenant or one of its strands from the ready index; a tenant follows its last strand."""
        work = self.tenant_clocks[what[0], what[1]]
        self._set_parked(what, replace(parked, vt=work.vt, ready_since=work.ready_since))

    def wake(self, what: Flow | Strand) -> None:
        """Return a tenant or a strand to the ready index."""
        self._set_parked(what, None)

    def wake_at(self, what: Flow | Strand, instant: Instant) -> None:
        """Let a parked tenant or strand wake from an instant on."""
        parked = self.tenant_clocks[what].parked if len(what) == 2 else self.parked[what]
        assert parked is not None
        self._set_parked(what, replace(parked, until=instant))

    def _set_parked(self, what: Flow | Strand, parked: Parked | None) -> None:
        if len(what) == 2:
            self.tenant_clocks[what].parked = parked
        elif parked is None:
            self.parked.pop(what, None)
        else:
            self.parked[what] = parked
        self.refresh_index((what[0], what[1]))

    def all_parked(self) -> list[tuple[Flow | Strand, Parked]]:
        """Return every parked tenant of a queue and every parked strand."""
        flows = [(flow, work.parked) for flow, work in self.tenant_clocks.items() if work.parked is not None]
        return [*flows, *self.parked.items()]

    # ── rules ─────────────────────────────────────────────────────────────────

    def rules(self, subject: Subject, now: Instant) -> Rules:
        """Return the effective rules of a subject."""
        declared = self.declared.get(subject, DEFAULTS[subject.kind])
        everyone = Subject(SubjectKind.TENANT, EVERY)
        if subject.kind is SubjectKind.TENANT and subject not in self.declared and subject != everyone:
            declared = self.rules(everyone, now)
        return overlay(declared, self.overrides.get(subject), now)

    def queue_rules(self, queue: str, now: Instant) -> QueueRules:
        """Return the effective rules of a queue."""
        rules = self.rules(Subject(SubjectKind.QUEUE, queue), now)
        assert isinstance(rules, QueueRules)
        return rules

    def tenant_rules(self, tenant: str, now: Instant) -> TenantRules:
        """Return the effective rules of a tenant."""
        rules = self.rules(Subject(SubjectKind.TENANT, tenant), now)
        assert isinstance(rules, TenantRules)
        return rules

    def task_rules(self, task: str, now: Instant) -> TaskRules:
        """Return the effective rules of a task."""
        rules = self.rules(Subject(SubjectKind.TASK, task), now)
        assert isinstance(rules, TaskRules)
        return rules

    def gate_rules(self, gate: str, now: Instant) -> GateRules:
        """Return the effective rules of a gate."""
        rules = self.rules(Subject(SubjectKind.GATE, gate), now)
        assert isinstance(rules, GateRules)
        return rules

    def budget_rules(self, budget: str, now: Instant) -> BudgetRules:
        """Return the effective rules of a budget."""
        rules = self.rules(Subject(SubjectKind.BUDGET, budget), now)
        assert isinstance(rules, BudgetRules)
        return rules

    def budget_of(self, task: str, now: Instant) -> tuple[str, BudgetRules] | None:
        """Return the budget that bounds a task, if any does."""
        name = self.task_rules(task, now).budget
        rules = BudgetRules() if name is None else self.budget_rules(name, now)
        return None if name is None or rules.ceiling is None else (name, rules)

    def limits(self, queue: str, tenant: str, now: Instant) -> Limits:
        """Return the limits of a tenant in a queue."""
        everyone = self.tenant_rules(EVERY, now)
        return limits_of(queue, self.tenant_rules(tenant, now), everyone, self.queue_rules(queue, now))

    def stride(self, tenant: str, now: Instant) -> int:
        """Return what a job of this tenant costs in virtual time."""
        return stride(self.tenant_rules(tenant, now).weight)

    def hold(self, holds: dict[Subject, Hold], subject: Subject, now: Instant) -> Hold | None:
        """Return a pause or close that is still in force."""
        hold = holds.get(subject)
        return hold if hold is not None and is_active(hold.until, now) else None

    def ends(self, subjects: Iterable[Subject], now: Instant) -> list[Instant]:
        """Return when overrides of these subjects end: the effective rules may change then."""
        found = (self.overrides.get(subject) for subject in subjects)
        untils = (one.until for one in found if one is not None)
        return sorted(until for until in untils if until is not None and until > now)


def strand_of(job: JobRecord) -> Strand:
    """Return the strand of a job."""
    return job.queue, job.tenant, job.task


def order_of(job: JobRecord) -> tuple[int, bytes]:
    """Return the order inside a strand and between the heads of strands."""
    return job.sort_key, job.id.bytes
