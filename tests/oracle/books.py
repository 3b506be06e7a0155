"""All that the oracle knows, and the few moves that change it. Knows no verb."""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from uuid import UUID

import msgspec

from fairlane.model.fairness import activate, stride, virtual_now
from fairlane.model.instants import Instant, Micros
from fairlane.model.job import JobRecord
from fairlane.model.layers import (
    DEFAULTS,
    EVERY,
    GateRules,
    Hold,
    Kind,
    Override,
    QueueRules,
    Rules,
    Subject,
    TaskRules,
    TenantRules,
    is_living,
    limits_of,
    overlay,
)
from fairlane.model.lifecycle import WAITING, State, is_finished
from fairlane.model.limits import Limits
from fairlane.store.contract.registry import TaskView, WorkerView

Flow = tuple[str, str]
"""(queue, tenant): the unit of fairness."""

Strand = tuple[str, str, str]
"""(queue, tenant, task): the unit of parking."""


@dataclass(frozen=True)
class Parked:
    """Why something left the ready index, when time alone ends that, and whose turn it was by then."""

    reason: str
    subject: Subject
    until: Instant | None
    vt: int = 0
    ready_since: int = 0


@dataclass
class Clockwork:
    """The fair order's memory of one (queue, tenant)."""

    vt: int = 0
    ready_since: int = 0
    is_ready: bool = False
    parked: Parked | None = None


@dataclass
class Holding:
    """What a live claim holds beside its job."""

    gate: str | None
    is_alone: bool
    charged: Micros | None


@dataclass
class Key:
    """An idempotency key and the job that has it."""

    id: UUID
    fingerprint: bytes
    state: State | None = None
    settled_at: Instant | None = None


@dataclass
class Books:
    """Every fact, in plain dictionaries. `save` is the only way in for a job."""

    jobs: dict[UUID, JobRecord] = field(default_factory=dict)
    delayed: dict[UUID, JobRecord] = field(default_factory=dict)
    counts: Counter[tuple[str, str, State]] = field(default_factory=Counter)
    ready: defaultdict[Strand, set[UUID]] = field(default_factory=lambda: defaultdict(set))
    clockwork: defaultdict[Flow, Clockwork] = field(default_factory=lambda: defaultdict(Clockwork))
    parked: dict[Strand, Parked] = field(default_factory=dict)
    floors: Counter[str] = field(default_factory=Counter)
    sequence: int = 0
    arrivals: dict[Subject | Flow, tuple[str, Instant]] = field(default_factory=dict)
    estimates: dict[tuple[str, str], Micros] = field(default_factory=dict)
    holdings: dict[UUID, Holding] = field(default_factory=dict)
    gate_used: Counter[str] = field(default_factory=Counter)
    keys: dict[tuple[str, str], Key] = field(default_factory=dict)
    dedup: dict[tuple[str, str, str], UUID] = field(default_factory=dict)
    declared: dict[Subject, Rules] = field(default_factory=dict)
    overrides: dict[Subject, Override] = field(default_factory=dict)
    paused: dict[Subject, Hold] = field(default_factory=dict)
    closed: dict[Subject, Hold] = field(default_factory=dict)
    workers: dict[str, WorkerView] = field(default_factory=dict)
    tasks: dict[str, TaskView] = field(default_factory=dict)
    leads: dict[str, tuple[str, Instant]] = field(default_factory=dict)
    beat_at: Instant | None = None
    resumed_at: Instant | None = None

    def copy(self) -> Books:
        """Give books that can be written in without changing these; records are immutable."""
        other = copy.copy(self)
        for name in (
            "jobs",
            "delayed",
            "counts",
            "parked",
            "floors",
            "arrivals",
            "estimates",
            "holdings",
            "gate_used",
        ):
            setattr(other, name, copy.copy(getattr(self, name)))
        other.ready = defaultdict(set, {strand: set(ids) for strand, ids in self.ready.items()})
        other.clockwork = defaultdict(
            Clockwork, {flow: copy.copy(one) for flow, one in self.clockwork.items()}
        )
        other.keys = {key: copy.copy(one) for key, one in self.keys.items()}
        other.dedup = dict(self.dedup)
        return other

    # ── jobs ──────────────────────────────────────────────────────────────────

    def save(self, job: JobRecord) -> JobRecord:
        """Write a job, with the counts, keys and turns that follow from its state."""
        before = self.jobs.get(job.id)
        if before is not None and before.state is job.state is State.READY:
            self.jobs[job.id] = job  # another place in its strand, which stays as it is: parked, if it was
            return job
        if before is not None:
            self._take_out(before)
        self.jobs[job.id] = job
        self.counts[job.tenant, job.queue, job.state] += 1
        if job.state is State.DELAYED:
            self.delayed[job.id] = job
        elif job.state is State.READY:
            self.ready[strand_of(job)].add(job.id)
        self.refresh_turn((job.queue, job.tenant))
        if is_finished(job.state) and (before is None or not is_finished(before.state)):
            self._free_keys(job)
        return job

    def change(self, job: JobRecord, **values: object) -> JobRecord:
        """Write some fields of a job."""
        return self.save(msgspec.structs.replace(job, **values))

    def drop(self, job: JobRecord) -> None:
        """Forget a finished job."""
        self._take_out(job)
        del self.jobs[job.id]

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
        """Let a de-duplication key go, if it is this job's."""
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
        """Give the job of a strand that goes first."""
        return min((self.jobs[id] for id in self.ready[strand]), key=order_of)

    # ── turns ─────────────────────────────────────────────────────────────────

    def strands(self, flow: Flow) -> Iterator[Strand]:
        """List the strands of a flow that hold ready jobs."""
        queue, tenant = flow
        return (one for one, ids in self.ready.items() if one[1] == tenant and one[0] == queue and ids)

    def is_in_index(self, flow: Flow) -> bool:
        """Whether a claim would look at this tenant."""
        if self.clockwork[flow].parked is not None:
            return False
        return any(strand not in self.parked for strand in self.strands(flow))

    def refresh_turn(self, flow: Flow) -> None:
        """Let a flow enter or leave the ready index, as its jobs and parks now say (S41: activation)."""
        work = self.clockwork[flow]
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
        """Give V of a queue."""
        clocks = [work.vt for flow, work in self.clockwork.items() if flow[0] == queue and work.is_ready]
        return virtual_now(self.floors[queue], clocks)

    def park(self, what: Flow | Strand, parked: Parked) -> None:
        """Take a tenant or one of its strands out of the ready index; the tenant follows its last strand."""
        work = self.clockwork[what[0], what[1]]
        self._set_parked(what, replace(parked, vt=work.vt, ready_since=work.ready_since))

    def wake(self, what: Flow | Strand) -> None:
        """Let a tenant or a strand back in."""
        self._set_parked(what, None)

    def wake_at(self, what: Flow | Strand, instant: Instant) -> None:
        """Let what is parked be woken from an instant on."""
        parked = self.clockwork[what].parked if len(what) == 2 else self.parked[what]
        assert parked is not None
        self._set_parked(what, replace(parked, until=instant))

    def _set_parked(self, what: Flow | Strand, parked: Parked | None) -> None:
        if len(what) == 2:
            self.clockwork[what].parked = parked
        elif parked is None:
            self.parked.pop(what, None)
        else:
            self.parked[what] = parked
        self.refresh_turn((what[0], what[1]))

    def all_parked(self) -> list[tuple[Flow | Strand, Parked]]:
        """List every tenant of a queue and every strand that is parked."""
        flows = [(flow, work.parked) for flow, work in self.clockwork.items() if work.parked is not None]
        return [*flows, *self.parked.items()]

    # ── rules ─────────────────────────────────────────────────────────────────

    def rules(self, subject: Subject, now: Instant) -> Rules:
        """Give what is in force for a subject."""
        beneath = self.declared.get(subject, DEFAULTS[subject.kind])
        everyone = Subject(Kind.TENANT, EVERY)
        if subject.kind is Kind.TENANT and subject not in self.declared and subject != everyone:
            beneath = self.rules(everyone, now)
        return overlay(beneath, self.overrides.get(subject), now)

    def queue_rules(self, queue: str, now: Instant) -> QueueRules:
        """Give what is in force for a queue."""
        rules = self.rules(Subject(Kind.QUEUE, queue), now)
        assert isinstance(rules, QueueRules)
        return rules

    def tenant_rules(self, tenant: str, now: Instant) -> TenantRules:
        """Give what is in force for a tenant."""
        rules = self.rules(Subject(Kind.TENANT, tenant), now)
        assert isinstance(rules, TenantRules)
        return rules

    def task_rules(self, task: str, now: Instant) -> TaskRules:
        """Give what is in force for a task."""
        rules = self.rules(Subject(Kind.TASK, task), now)
        assert isinstance(rules, TaskRules)
        return rules

    def gate_rules(self, gate: str, now: Instant) -> GateRules:
        """Give what is in force for a gate."""
        rules = self.rules(Subject(Kind.GATE, gate), now)
        assert isinstance(rules, GateRules)
        return rules

    def limits(self, queue: str, tenant: str, now: Instant) -> Limits:
        """Give the limits of a tenant in a queue."""
        everyone = self.tenant_rules(EVERY, now)
        return limits_of(queue, self.tenant_rules(tenant, now), everyone, self.queue_rules(queue, now))

    def stride(self, tenant: str, now: Instant) -> int:
        """Give what a job of this tenant costs in virtual time."""
        return stride(self.tenant_rules(tenant, now).weight)

    def hold(self, holds: dict[Subject, Hold], subject: Subject, now: Instant) -> Hold | None:
        """Give a pause or close that still holds."""
        hold = holds.get(subject)
        return hold if hold is not None and is_living(hold.until, now) else None

    def ends(self, subjects: Iterable[Subject], now: Instant) -> list[Instant]:
        """Say when overrides of these subjects end by themselves: what is in force may change then."""
        found = (self.overrides.get(subject) for subject in subjects)
        untils = (one.until for one in found if one is not None)
        return sorted(until for until in untils if until is not None and until > now)


def strand_of(job: JobRecord) -> Strand:
    """Name the strand of a job."""
    return job.queue, job.tenant, job.task


def order_of(job: JobRecord) -> tuple[int, bytes]:
    """Give the order inside a strand and between the heads of strands."""
    return job.sort_key, job.id.bytes
