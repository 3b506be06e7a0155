"""Limits at claim time of a queue, a tenant and a task: pause, running limit, rate, breaker, gate (S42-S46).

Says what blocks a start and until when. Does not park: `claim.ClaimPass` does.
"""

from __future__ import annotations

from fairlane.model.guards.breaker import free_slots, opens_at, with_permit
from fairlane.model.job import JobRecord
from fairlane.model.policy.limits import NO_LIMITS, Rate, is_below
from fairlane.model.policy.overrides import QueueRules, Subject, SubjectKind
from fairlane.model.scheduling.look_ahead import may_be_ahead
from fairlane.store.breaker_changes import keys_of, line_key
from fairlane.store.contract.breakers import BreakerKey
from fairlane.store.policy_records import EVERYONE
from fairlane.store.sqlite.claims.budgets import budget_block
from fairlane.store.sqlite.tables.counters import CounterRow
from fairlane.store.sqlite.tables.tenant_queue_rows import Block, TenantQueue
from fairlane.store.sqlite.transaction import Transaction


def queue_block(tx: Transaction, queue: str) -> Block | None:
    """Return what blocks a whole queue: its pause or its rate."""
    subject = Subject(SubjectKind.QUEUE, queue)
    rate = tx.policies.queue(queue, tx.now).rate
    pause = _pause(tx, subject)
    if pause is not None or rate is None:
        return pause
    return _rate_limit(tx, rate, tx.counters.queues[queue], (subject,))


def tenant_block(tx: Transaction, tenant_queue: TenantQueue) -> Block | None:
    """Return what blocks a tenant in a queue: its pause, running limit or rate."""
    subject = Subject(SubjectKind.TENANT, tenant_queue.tenant)
    pause = _pause(tx, subject)
    if pause is not None:
        return pause
    limits = tx.policies.limits(tenant_queue.queue, tenant_queue.tenant, tx.now)
    if limits.running is None and limits.rate is None:
        return None
    layers = (subject, EVERYONE, Subject(SubjectKind.QUEUE, tenant_queue.queue))
    if not is_below(tenant_queue.running, limits.running):
        return Block("running_limit", subject, tx.policies.ends(layers, tx.now))
    return None if limits.rate is None else _rate_limit(tx, limits.rate, tenant_queue, layers)


def task_block(tx: Transaction, task: str, tenant: str) -> Block | None:
    """Return what blocks a task of a tenant: its pause, its breaker, its rate or its gate."""
    subject = Subject(SubjectKind.TASK, task)
    pause = _pause(tx, subject)
    if pause is not None:
        return pause
    rules = tx.policies.task(task, tx.now)
    if rules.breaker is not None and tx.breakers.is_any_open(rules.breaker):
        block = _breaker(tx, rules.breaker, tenant)
        if block is not None:
            return block
    if rules.rate is not None:
        block = _rate_limit(tx, rules.rate, tx.counters.tasks[task], (subject,))
        if block is not None:
            return block
    return None if rules.gate is None else _gate(tx, rules.gate)


def strand_block(tx: Transaction, task: str, tenant: str) -> Block | None:
    """Return what blocks a tenant's jobs of a task: what blocks the task, or its budget."""
    return task_block(tx, task, tenant) or budget_block(tx, task, tenant)


def _gate(tx: Transaction, name: str) -> Block | None:
    subject = Subject(SubjectKind.GATE, name)
    if free_gate_slots(tx, name) == 0:
        return Block("gate", subject, tx.policies.ends((subject,), tx.now))
    rate = tx.policies.gate(name, tx.now).rate
    return None if rate is None else _rate_limit(tx, rate, tx.counters.gates[name], (subject,))


def _breaker(tx: Transaction, name: str, tenant: str) -> Block | None:
    """Block while a breaker lets nobody else pass, and until time alone changes that."""
    for key in keys_of(name, tenant):
        if free_permits(tx, key) == 0:
            subject = Subject(SubjectKind.BREAKER, str(key).removeprefix("breaker "))
            return Block("breaker", subject, opens_at(tx.breakers[key], tx.now))
    return None


def free_permits(tx: Transaction, key: BreakerKey) -> int | None:
    """Return how many more jobs may pass a breaker; None: everybody."""
    state = tx.breakers[key]
    return free_slots(state, tx.now, tx.breakers.running(state.permits))


def free_line_slots(tx: Transaction, line: str) -> int | None:
    """Return for how many strands in a line there is room, at a gate or a breaker; None: for all."""
    key = line_key(line)
    return free_gate_slots(tx, line) if key is None else free_permits(tx, key)


def free_gate_slots(tx: Transaction, name: str) -> int | None:
    """Return the free slots of a gate; None if it has no limit."""
    limit = tx.policies.gate(name, tx.now).limit
    return None if limit is None else max(0, limit - tx.counters.gates[name].value)


def _pause(tx: Transaction, subject: Subject) -> Block | None:
    hold = tx.policies.paused(subject, tx.now)
    return None if hold is None else Block("paused", subject, hold.until)


def _rate_limit(
    tx: Transaction, rate: Rate, rate_state: CounterRow | TenantQueue, layers: tuple[Subject, ...]
) -> Block | None:
    """Block until the rate allows a start, or until an override expires and another rate may apply."""
    free_at = rate.free_at(rate.next_allowed_from(rate_state.rate_id, rate_state.next_allowed_at))
    if free_at <= tx.now:
        return None
    ends = tx.policies.ends(layers, tx.now)
    return Block("rate", layers[0], free_at if ends is None else min(free_at, ends))


def count_start(tx: Transaction, tenant_queue: TenantQueue, task: str) -> str | None:
    """Count a start against all its rates and take a slot at its gate; return the gate's name."""
    now = tx.now
    rules = tx.policies.task(task, now)
    counters = tx.counters
    rate = tx.policies.queue(tenant_queue.queue, now).rate
    if rate is not None:
        counters.queues.start(tenant_queue.queue, rate, now)
    rate = tx.policies.limits(tenant_queue.queue, tenant_queue.tenant, now).rate
    if rate is not None:
        tenant_queue.next_allowed_at = rate.start(
            rate.next_allowed_from(tenant_queue.rate_id, tenant_queue.next_allowed_at), now
        )
        tenant_queue.rate_id = rate.rate_id
    if rules.rate is not None:
        counters.tasks.start(task, rules.rate, now)
    if rules.gate is None:
        return None
    counters.gates.set(rules.gate, counters.gates[rules.gate].value + 1)
    rate = tx.policies.gate(rules.gate, now).rate
    if rate is not None:
        counters.gates.start(rules.gate, rate, now)
    return rules.gate


class ClaimRules:
    """The limits as one claim sees them, computed once: its instant and the policies do not change.

    Most tenants and tasks have no limit at all. Checking that again for every job was a fifth of a claim's
    cost.
    """

    def __init__(self, tx: Transaction) -> None:
        """Start empty."""
        self._tx = tx
        self._free: set[tuple[str, str]] = set()
        self._free_tenant_queues: set[int] = set()
        self._free_tasks: set[str] = set()
        self._queues: dict[str, QueueRules] = {}
        self._strides: dict[str, int] = {}

    def queue(self, name: str) -> QueueRules:
        """Return the rules in force for a queue."""
        found = self._queues.get(name)
        if found is None:
            found = self._queues[name] = self._tx.policies.queue(name, self._tx.now)
        return found

    def tenant_block(self, tenant_queue: TenantQueue) -> Block | None:
        """Return what blocks a tenant in a queue."""
        if tenant_queue.id in self._free_tenant_queues:
            return None
        policies = self._tx.policies
        # Tenants without a policy of their own share one answer.
        rules_key = (tenant_queue.queue, policies.rules_name(tenant_queue.tenant))
        if rules_key not in self._free:
            block = tenant_block(self._tx, tenant_queue)
            if block is not None or policies.limits(*rules_key, self._tx.now) != NO_LIMITS:
                return block
            self._free.add(rules_key)
        self._free_tenant_queues.add(tenant_queue.id)
        return None

    def strand_block(self, task: str, tenant: str) -> Block | None:
        """Return what blocks a tenant's jobs of a task."""
        if task in self._free_tasks:
            return None
        block = strand_block(self._tx, task, tenant)
        rules = self._tx.policies.task(task, self._tx.now)
        is_guarded = rules.breaker is not None and self._tx.breakers.is_any_open(rules.breaker)
        is_limited = rules.rate is not None or rules.gate is not None or rules.budget is not None
        if block is None and not is_limited and not is_guarded:
            self._free_tasks.add(task)
        return block

    def is_free(self, task: str) -> bool:
        """Whether neither rate nor gate nor budget bounds a task that was met."""
        return task in self._free_tasks

    def count_start(self, tenant_queue: TenantQueue, task: str) -> str | None:
        """Count a start against all its rates and take a slot at its gate; return the gate's name."""
        is_free = tenant_queue.id in self._free_tenant_queues and task in self._free_tasks
        if is_free and self.queue(tenant_queue.queue).rate is None:
            return None
        return count_start(self._tx, tenant_queue, task)

    def take_permits(self, job: JobRecord) -> bool:
        """Note a claimed job at the breakers that it passes; return whether one is not closed."""
        if job.task in self._free_tasks:
            return False
        tx, has_permit = self._tx, False
        tx.breakers.note_claimed(job.id)
        breaker = tx.policies.task(job.task, tx.now).breaker
        if breaker is None or not tx.breakers.is_any_open(breaker):
            return False
        for key in keys_of(breaker, job.tenant):
            state = tx.breakers[key]
            if state.slots is not None:
                tx.breakers[key] = with_permit(state, tx.now, job.id, tx.breakers.running(state.permits))
                has_permit = True
        return has_permit

    def may_be_ahead(self, tenant_queue: TenantQueue, job: JobRecord) -> bool:
        """Whether a job may be claimed before a slot is free for it (S68)."""
        has_gate = has_rate = False
        is_free = tenant_queue.id in self._free_tenant_queues and job.task in self._free_tasks
        if not is_free or self.queue(job.queue).rate is not None:
            policies, now = self._tx.policies, self._tx.now
            task = policies.task(job.task, now)
            has_gate = task.gate is not None or task.budget is not None  # a gate's own rate needs no look
            if task.breaker is not None and self._tx.breakers.is_any_open(task.breaker):
                keys = keys_of(task.breaker, job.tenant)
                has_gate = has_gate or any(self._tx.breakers[key].slots is not None for key in keys)
            limits = policies.limits(job.queue, job.tenant, now)
            has_rate = any(rate is not None for rate in (self.queue(job.queue).rate, limits.rate, task.rate))
        return may_be_ahead(job, has_gate=has_gate, has_rate=has_rate)

    def stride(self, tenant_queue: TenantQueue) -> int:
        """Return the virtual time that one job of a tenant costs."""
        rules_name = self._tx.policies.rules_name(tenant_queue.tenant)
        found = self._strides.get(rules_name)
        if found is None:
            found = self._strides[rules_name] = self._tx.policies.stride(rules_name, self._tx.now)
        return found
