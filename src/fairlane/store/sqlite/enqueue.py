"""Let new jobs in: what is known of each, what `admit` decides, what is then written (S13-S18)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec

from fairlane.model.admission import Admitted, KeyHolder, Refusal, Repeat, Standing, admit, linked
from fairlane.model.job import JobRecord, NewJob
from fairlane.model.layers import Kind, Subject
from fairlane.model.lifecycle import State
from fairlane.model.moves import born
from fairlane.model.scope import SYSTEM
from fairlane.store.contract.jobs import Created, Enqueued, EnqueueReply, EnqueueRequest, OverLimit
from fairlane.store.sqlite.asking import all_rows, each_row, one_row, one_value
from fairlane.store.sqlite.homes import bring_in, find_any
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tx import Tx

_SQL = load("enqueue")


class _Terms:
    """What holds for all jobs of one queue and task whose tenants are under the same rules."""

    __slots__ = ("closed", "is_known", "is_open", "limits", "max_waiting")

    def __init__(self, tx: Tx, new: NewJob, *, must_be_declared: bool) -> None:
        """Look up what is allowed; `is_open` if every job comes in that has no key and a new id."""
        self.is_known = not must_be_declared or _is_declared(tx, new.tenant)
        self.closed = _closed(tx, new)
        self.limits = tx.rules.limits(new.queue, new.tenant, tx.now)
        self.max_waiting = tx.rules.queue(new.queue, tx.now).max_waiting
        is_free = self.limits.waiting is None and self.max_waiting is None
        self.is_open = is_free and isinstance(admit(0, new, self.standing(), repeated=False), Admitted)

    def standing(self, **known: Any) -> Standing:
        """Say what bears on one job."""
        return Standing(
            is_tenant_known=self.is_known,
            closed=self.closed,
            limits=self.limits,
            max_waiting=self.max_waiting,
            **known,
        )


class _Batch:
    """What is known of the items of one batch, and what those before have brought."""

    def __init__(self, tx: Tx, request: EnqueueRequest) -> None:
        self._tx = tx
        self._request = request
        self._terms: dict[tuple[str, str, str], _Terms] = {}
        self.ids = [new.id.bytes for new in request.jobs]
        self.owners = _owners(tx, self.ids)
        self.created: dict[bytes, Created] = {}
        self.keys: dict[tuple[str, str], KeyHolder] = {}
        self.replaced: list[tuple[str, str]] = []  # keys that dead jobs had
        self.dedup: dict[tuple[str, str, str], UUID] = {}
        self._waiting: dict[tuple[str, str], int] = {}
        self.queue_waiting: dict[str, int] = {}
        tx.turns.gather({(new.queue, new.tenant, new.task) for new in request.jobs})
        tx.rules.gather({new.tenant for new in request.jobs})

    def terms(self, new: NewJob) -> _Terms:
        rules = SYSTEM if new.tenant == SYSTEM else self._tx.rules.ruled_as(new.tenant)
        key = (new.queue, rules, new.task)
        terms = self._terms.get(key)
        if terms is None:
            terms = _Terms(self._tx, new, must_be_declared=self._request.must_be_declared)
            self._terms[key] = terms
        return terms

    def standing(self, new: NewJob, id: bytes, terms: _Terms) -> Standing:
        owner, key, dedup = self.owners.get(id), new.idempotency_key, new.dedup_key
        return terms.standing(
            same_id=None if owner is None else new.id,
            is_id_foreign=owner is not None and owner != new.tenant,
            same_key=None if key is None else _holder(self._tx, new.tenant, key, self),
            same_dedup=None if dedup is None else _duplicate(self._tx, new, dedup, self),
            waiting=self.waiting(new.queue, new.tenant),
            queue_waiting=0 if terms.max_waiting is None else _queue_waiting(self._tx, new.queue, self),
        )

    def waiting(self, queue: str, tenant: str) -> int:
        """Count the tenant's waiting jobs, those of this batch included."""
        if (queue, tenant) not in self._waiting:
            turn = self._tx.turns.find(queue, tenant)
            self._waiting[queue, tenant] = 0 if turn is None else turn.delayed + turn.ready
        return self._waiting[queue, tenant]

    def let_in(self, new: NewJob, id: bytes) -> Created:
        created = self.created[id] = Created(new, self._tx.now)
        self.owners[id] = new.tenant
        return created

    def take_keys(self, new: NewJob) -> None:
        if new.idempotency_key is not None:
            self.keys[new.tenant, new.idempotency_key] = KeyHolder(new.id, new.fingerprint)
        if new.dedup_key is not None:
            self.dedup[new.tenant, new.task, new.dedup_key] = new.id

    def count_in(self, new: NewJob) -> int:
        """Count a job that came in by `admit`; give how many of its tenant wait now."""
        self._waiting[new.queue, new.tenant] += 1
        if new.queue in self.queue_waiting:
            self.queue_waiting[new.queue] += 1
        return self._waiting[new.queue, new.tenant]


def enqueue(tx: Tx, request: EnqueueRequest) -> EnqueueReply:
    """Store a batch whole, or nothing of it: whatever is refused is known before anything is written."""
    batch = _Batch(tx, request)
    enqueued: list[Enqueued | Created] = []
    refused: list[Refusal] = []
    over: list[OverLimit] = []
    for index, (id, new) in enumerate(zip(batch.ids, request.jobs, strict=True)):
        terms = batch.terms(new)
        has_key = new.idempotency_key is not None or new.dedup_key is not None
        if terms.is_open and not has_key and id not in batch.owners:
            enqueued.append(batch.let_in(new, id))
            continue
        admission = admit(index, new, batch.standing(new, id, terms), repeated=request.is_repeated)
        if isinstance(admission, Admitted):
            if admission.replaces is not None:
                new = _replacing(tx, new, admission.replaces, batch)  # noqa: PLW2901 (it is this that comes in)
            enqueued.append(batch.let_in(new, id))
            batch.take_keys(new)
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


def _owners(tx: Tx, ids: list[bytes]) -> dict[bytes, str]:
    """Give whose jobs have these ids already. Ids grow with time: hardly one is below the highest there."""
    highest = one_value(tx.db, _SQL.highest_id) or b""
    return dict(each_row(tx.db, _SQL.same_id, [(id,) for id in ids if id <= highest]))


def _is_declared(tx: Tx, tenant: str) -> bool:
    return tenant == SYSTEM or tx.rules.policy(Subject(Kind.TENANT, tenant)).declared is not None


def _closed(tx: Tx, new: NewJob) -> str | None:
    for kind, name in ((Kind.QUEUE, new.queue), (Kind.TENANT, new.tenant), (Kind.TASK, new.task)):
        subject = Subject(kind, name)
        hold = tx.rules.closed(subject, tx.now)
        if hold is not None:
            return f"{subject}: {hold.reason}"
    return None


def _holder(tx: Tx, tenant: str, key: str, batch: _Batch) -> KeyHolder | None:
    found = batch.keys.get((tenant, key))
    if found is None:
        row = one_row(tx.db, _SQL.same_key, (tenant, key))
        return None if row is None else KeyHolder(UUID(bytes=row[0]), row[1], row[2] == State.DEAD)
    return found


def _replacing(tx: Tx, new: NewJob, dead: UUID, batch: _Batch) -> NewJob:
    """Give the job that comes in for a dead one, whose key it takes (S13)."""
    batch.replaced.append((new.tenant, str(new.idempotency_key)))
    return linked(new, find_any(tx, (dead,)).get(dead))


def _duplicate(tx: Tx, new: NewJob, key: str, batch: _Batch) -> UUID | None:
    found = batch.dedup.get((new.tenant, new.task, key))
    if found is None:
        raw = one_value(tx.db, _SQL.same_dedup, (new.tenant, new.task, key))
        return None if raw is None else UUID(bytes=raw)
    return found


def _queue_waiting(tx: Tx, queue: str, batch: _Batch) -> int:
    if queue not in batch.queue_waiting:
        batch.queue_waiting[queue] = one_value(tx.db, _SQL.queue_waiting, (queue,))
    return batch.queue_waiting[queue]


def _write(tx: Tx, batch: _Batch) -> None:
    bring_in(tx, batch.created)
    if batch.replaced:
        tx.write_all(_SQL.key_out, batch.replaced)
    keys = [(*key, holder.id.bytes, holder.fingerprint) for key, holder in batch.keys.items()]
    tx.write_all(_SQL.key_in, keys)
    tx.write_all(_SQL.dedup_in, [(*key, id.bytes) for key, id in batch.dedup.items()])
    for queue in {one.new.queue for one in batch.created.values()}:
        tx.hint(queue)


def _earlier(tx: Tx, new: NewJob, existing: UUID, batch: _Batch) -> JobRecord:
    """Give the job that answers for a repeat, or its husk if only the key is left (S13)."""
    created = batch.created.get(existing.bytes)
    job = find_any(tx, (existing,)).get(existing) if created is None else created.job
    if job is not None:
        return job
    ((_, _, state, settled_at),) = all_rows(tx.db, _SQL.same_key, (new.tenant, new.idempotency_key))
    return msgspec.structs.replace(
        born(new, settled_at), id=existing, state=State(state), because=None, settled_at=settled_at
    )
