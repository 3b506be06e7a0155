"""Gather what decides whether new jobs are stored, take in those that are admitted, and write them (S13-S18).

Enqueues and reprocessed dead letters come in here. Decides nothing: `admit` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from fairlane.model.job import JobRecord, NewJob
from fairlane.model.lifecycle.admission import AdmissionFacts, Admitted, admit, linked_to_dead
from fairlane.model.policy.limits import NO_LIMITS
from fairlane.model.policy.overrides import Subject, SubjectKind
from fairlane.model.scope import SYSTEM
from fairlane.store.contract.jobs import Created
from fairlane.store.sqlite.jobs.idempotency import BatchKeys, tombstone
from fairlane.store.sqlite.query import each_row, one_value
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_tables import find_any, insert_jobs
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("enqueue")


class _AdmissionRules:
    """The rules for all jobs of one queue and task whose tenants have the same rules."""

    __slots__ = ("closed", "is_known", "is_open", "limits", "max_waiting")

    def __init__(self, tx: Transaction, new: NewJob, *, must_be_declared: bool, has_limits: bool) -> None:
        """Look up the rules. `is_open`: a job without keys and with a new id is admitted without a check."""
        self.is_known = not must_be_declared or _is_declared(tx, new.tenant)
        self.closed = _closed(tx, new)
        self.limits = tx.policies.limits(new.queue, new.tenant, tx.now) if has_limits else NO_LIMITS
        self.max_waiting = tx.policies.queue(new.queue, tx.now).max_waiting if has_limits else None
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


class Batch:
    """One batch while it comes in: what is stored, and what earlier jobs of the batch add to it.

    `write` writes all that was taken in. Without `has_limits` no waiting limit counts.
    """

    def __init__(
        self,
        tx: Transaction,
        jobs: Sequence[NewJob],
        *,
        must_be_declared: bool = False,
        has_limits: bool = True,
    ) -> None:
        """Read what bears on these jobs."""
        self._tx = tx
        self._must_be_declared = must_be_declared
        self._has_limits = has_limits
        self._rules: dict[tuple[str, str, str], _AdmissionRules] = {}
        self.ids = [new.id.bytes for new in jobs]
        self.owners = _owners(tx, self.ids)
        self.created: dict[bytes, Created] = {}
        self._keys = BatchKeys(tx)
        self._waiting: dict[tuple[str, str], int] = {}
        self._queue_waiting: dict[str, int] = {}
        tx.tenant_queues.preload({(new.queue, new.tenant, new.task) for new in jobs})
        tx.policies.preload({new.tenant for new in jobs})

    def rules(self, new: NewJob) -> _AdmissionRules:
        """Return the rules for a new job."""
        ruled_as = SYSTEM if new.tenant == SYSTEM else self._tx.policies.rules_name(new.tenant)
        key = (new.queue, ruled_as, new.task)
        rules = self._rules.get(key)
        if rules is None:
            rules = _AdmissionRules(
                self._tx, new, must_be_declared=self._must_be_declared, has_limits=self._has_limits
            )
            self._rules[key] = rules
        return rules

    def facts(self, new: NewJob, id: bytes, rules: _AdmissionRules) -> AdmissionFacts:
        """Return the facts on which `admit` decides about a new job."""
        owner = self.owners.get(id)
        return rules.facts(
            same_id=None if owner is None else new.id,
            is_id_foreign=owner is not None and owner != new.tenant,
            same_key=self._keys.holder(new),
            same_dedup=self._keys.duplicate(new),
            waiting=self._count_waiting(new.queue, new.tenant),
            queue_waiting=0 if rules.max_waiting is None else self._count_queue(new.queue),
        )

    def add(self, new: NewJob, id: bytes) -> Created:
        """Take in a job that has no keys."""
        created = self.created[id] = Created(new, self._tx.now)
        self.owners[id] = new.tenant
        return created

    def take(self, new: NewJob, id: bytes, admitted: Admitted) -> Created:
        """Take in a job with its keys; it takes over the key of the dead job that it replaces."""
        replaces = admitted.replaces
        if replaces is not None:
            new = linked_to_dead(new, find_any(self._tx, (replaces,)).get(replaces))
        self._keys.take(new, replaces_dead=replaces is not None)
        self._waiting[new.queue, new.tenant] += 1
        if new.queue in self._queue_waiting:
            self._queue_waiting[new.queue] += 1
        return self.add(new, id)

    def waiting(self, new: NewJob) -> int:
        """Return how many jobs of a tenant wait, those of this batch included."""
        return self._waiting[new.queue, new.tenant]

    def earlier(self, new: NewJob, existing: UUID) -> JobRecord:
        """Return the job that a repeat names; a tombstone of it if only its key is left (S13)."""
        created = self.created.get(existing.bytes)
        job = find_any(self._tx, (existing,)).get(existing) if created is None else created.job
        return job or tombstone(self._tx, new, existing)

    def write(self) -> None:
        """Write the jobs that were taken in, and wake workers of their queues."""
        insert_jobs(self._tx, self.created)
        self._keys.write()
        for queue in {one.new.queue for one in self.created.values()}:
            self._tx.hint(queue)

    def _count_waiting(self, queue: str, tenant: str) -> int:
        if (queue, tenant) not in self._waiting:
            tenant_queue = self._tx.tenant_queues.find(queue, tenant)
            waiting = 0 if tenant_queue is None else tenant_queue.delayed + tenant_queue.ready
            self._waiting[queue, tenant] = waiting
        return self._waiting[queue, tenant]

    def _count_queue(self, queue: str) -> int:
        if queue not in self._queue_waiting:
            self._queue_waiting[queue] = one_value(self._tx.db, _SQL.queue_waiting, (queue,))
        return self._queue_waiting[queue]


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
