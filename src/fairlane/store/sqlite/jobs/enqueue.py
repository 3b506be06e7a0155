"""Enqueue a batch of jobs: gather what bears on each, let `admit` decide, write (S13-S18)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from fairlane.model.job import JobRecord, NewJob
from fairlane.model.lifecycle.admission import (
    AdmissionFacts,
    Admitted,
    Refusal,
    Repeat,
    admit,
    linked_to_dead,
)
from fairlane.model.policy.overrides import Subject, SubjectKind
from fairlane.model.scope import SYSTEM
from fairlane.store.contract.jobs import Created, Enqueued, EnqueueReply, EnqueueRequest, OverLimit
from fairlane.store.sqlite.jobs.idempotency import BatchKeys, tombstone
from fairlane.store.sqlite.query import each_row, one_value
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_tables import find_any, insert_jobs
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("enqueue")


class _AdmissionRules:
    """The rules for all jobs of one queue and task whose tenants have the same rules."""

    __slots__ = ("closed", "is_known", "is_open", "limits", "max_waiting")

    def __init__(self, tx: Transaction, new: NewJob, *, must_be_declared: bool) -> None:
        """Look up the rules. `is_open`: a job without keys and with a new id is admitted without a check."""
        self.is_known = not must_be_declared or _is_declared(tx, new.tenant)
        self.closed = _closed(tx, new)
        self.limits = tx.policies.limits(new.queue, new.tenant, tx.now)
        self.max_waiting = tx.policies.queue(new.queue, tx.now).max_waiting
        is_free = self.limits.waiting is None and self.max_waiting is None
        self.is_open = is_free and isinstance(admit(0, new, self.facts(), repeated=False), Admitted)

    def facts(self, **known: Any) -> AdmissionFacts:
        """Return the facts on which `admit` decides."""
        return AdmissionFacts(
            is_tenant_known=self.is_known,
            closed=self.closed,
            limits=self.limits,
            max_waiting=self.max_waiting,
            **known,
        )


class _Batch:
    """One batch while it is enqueued: what is stored, and what earlier jobs of the batch add to it."""

    def __init__(self, tx: Transaction, request: EnqueueRequest) -> None:
        self._tx = tx
        self._request = request
        self._rules: dict[tuple[str, str, str], _AdmissionRules] = {}
        self.ids = [new.id.bytes for new in request.jobs]
        self.owners = _owners(tx, self.ids)
        self.created: dict[bytes, Created] = {}
        self.keys = BatchKeys(tx)
        self._waiting: dict[tuple[str, str], int] = {}
        self.queue_waiting: dict[str, int] = {}
        tx.tenant_queues.preload({(new.queue, new.tenant, new.task) for new in request.jobs})
        tx.policies.preload({new.tenant for new in request.jobs})

    def rules(self, new: NewJob) -> _AdmissionRules:
        """Return the rules for a new job."""
        ruled_as = SYSTEM if new.tenant == SYSTEM else self._tx.policies.rules_name(new.tenant)
        key = (new.queue, ruled_as, new.task)
        rules = self._rules.get(key)
        if rules is None:
            rules = _AdmissionRules(self._tx, new, must_be_declared=self._request.must_be_declared)
            self._rules[key] = rules
        return rules

    def facts(self, new: NewJob, id: bytes, rules: _AdmissionRules) -> AdmissionFacts:
        """Return the facts on which `admit` decides about a new job."""
        owner = self.owners.get(id)
        return rules.facts(
            same_id=None if owner is None else new.id,
            is_id_foreign=owner is not None and owner != new.tenant,
            same_key=self.keys.holder(new),
            same_dedup=self.keys.duplicate(new),
            waiting=self.waiting(new.queue, new.tenant),
            queue_waiting=0 if rules.max_waiting is None else _queue_waiting(self._tx, new.queue, self),
        )

    def waiting(self, queue: str, tenant: str) -> int:
        """Return how many jobs of a tenant wait, those of this batch included."""
        if (queue, tenant) not in self._waiting:
            tenant_queue = self._tx.tenant_queues.find(queue, tenant)
            waiting = 0 if tenant_queue is None else tenant_queue.delayed + tenant_queue.ready
            self._waiting[queue, tenant] = waiting
        return self._waiting[queue, tenant]

    def add(self, new: NewJob, id: bytes) -> Created:
        """Add an admitted job to the batch."""
        created = self.created[id] = Created(new, self._tx.now)
        self.owners[id] = new.tenant
        return created

    def count_in(self, new: NewJob) -> int:
        """Count an admitted job; return how many jobs of its tenant wait now."""
        self._waiting[new.queue, new.tenant] += 1
        if new.queue in self.queue_waiting:
            self.queue_waiting[new.queue] += 1
        return self._waiting[new.queue, new.tenant]


def enqueue(tx: Transaction, request: EnqueueRequest) -> EnqueueReply:
    """Enqueue all jobs of a batch or none: all refusals are known before anything is written."""
    batch = _Batch(tx, request)
    enqueued: list[Enqueued | Created] = []
    refused: list[Refusal] = []
    over: list[OverLimit] = []
    for index, (id, new) in enumerate(zip(batch.ids, request.jobs, strict=True)):
        rules = batch.rules(new)
        has_key = new.idempotency_key is not None or new.dedup_key is not None
        if rules.is_open and not has_key and id not in batch.owners:
            enqueued.append(batch.add(new, id))
            continue
        admission = admit(index, new, batch.facts(new, id, rules), repeated=request.is_repeated)
        if isinstance(admission, Admitted):
            if admission.replaces is not None:
                dead = find_any(tx, (admission.replaces,)).get(admission.replaces)
                new = linked_to_dead(new, dead)  # noqa: PLW2901 (this job comes in)
            enqueued.append(batch.add(new, id))
            batch.keys.take(new, replaces_dead=admission.replaces is not None)
            waiting = batch.count_in(new)
            if admission.over is not None:
                over.append(OverLimit(new.tenant, new.queue, waiting, admission.over))
        elif isinstance(admission, Repeat):
            earlier = _earlier(tx, new, admission.existing, batch)
            enqueued.append(Enqueued(earlier, is_created=admission.existing == new.id))
        else:
            refused.append(admission)
    if refused:
        return EnqueueReply(refused=tuple(refused))
    _write(tx, batch)
    return EnqueueReply(tuple(enqueued), (), tuple(over))


def _owners(tx: Transaction, ids: list[bytes]) -> dict[bytes, str]:
    """Return the tenants of stored jobs with these ids. Ids grow with time, so few are below the highest."""
    highest = one_value(tx.db, _SQL.highest_id) or b""
    return dict(each_row(tx.db, _SQL.same_id, [(id,) for id in ids if id <= highest]))


def _is_declared(tx: Transaction, tenant: str) -> bool:
    return tenant == SYSTEM or tx.policies.policy(Subject(SubjectKind.TENANT, tenant)).declared is not None


def _closed(tx: Transaction, new: NewJob) -> str | None:
    names = {SubjectKind.QUEUE: new.queue, SubjectKind.TENANT: new.tenant, SubjectKind.TASK: new.task}
    for kind, name in names.items():
        subject = Subject(kind, name)
        hold = tx.policies.closed(subject, tx.now)
        if hold is not None:
            return f"{subject}: {hold.reason}"
    return None


def _queue_waiting(tx: Transaction, queue: str, batch: _Batch) -> int:
    if queue not in batch.queue_waiting:
        batch.queue_waiting[queue] = one_value(tx.db, _SQL.queue_waiting, (queue,))
    return batch.queue_waiting[queue]


def _write(tx: Transaction, batch: _Batch) -> None:
    insert_jobs(tx, batch.created)
    batch.keys.write()
    for queue in {one.new.queue for one in batch.created.values()}:
        tx.hint(queue)


def _earlier(tx: Transaction, new: NewJob, existing: UUID, batch: _Batch) -> JobRecord:
    """Return the job that a repeat names; a tombstone of it if only its key is left (S13)."""
    created = batch.created.get(existing.bytes)
    job = find_any(tx, (existing,)).get(existing) if created is None else created.job
    return job or tombstone(tx, new, existing)
