"""Let new jobs in: what is known of each, what `admit` decides, what is then written (S13-S18)."""

from __future__ import annotations

from uuid import UUID

import msgspec

from fairlane.model.admission import Admitted, KeyHolder, Refusal, Repeat, Standing, admit
from fairlane.model.job import JobRecord, NewJob
from fairlane.model.layers import Kind, Subject
from fairlane.model.lifecycle import State
from fairlane.model.moves import born
from fairlane.model.scope import SYSTEM
from fairlane.store.contract.jobs import Enqueued, EnqueueReply, EnqueueRequest, OverLimit
from fairlane.store.sqlite.asking import all_rows, one_row, one_value
from fairlane.store.sqlite.homes import bring_in, find_any
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tx import Tx

_SQL = load("enqueue")


class RefusedError(Exception):
    """Undoes a batch; carries the refusals out of the transaction."""

    def __init__(self, refusals: tuple[Refusal, ...]) -> None:
        super().__init__(refusals)
        self.refusals = refusals


class _Batch:
    """What the items of one batch have stored so far, which the file does not know yet."""

    def __init__(self) -> None:
        self.jobs: dict[UUID, JobRecord] = {}
        self.keys: dict[tuple[str, str], KeyHolder] = {}
        self.dedup: dict[tuple[str, str, str], UUID] = {}
        self.waiting: dict[str, int] = {}


def enqueue(tx: Tx, request: EnqueueRequest) -> EnqueueReply:
    """Store a batch whole, or raise `RefusedError`, which undoes what was stored of it."""
    batch = _Batch()
    enqueued: list[Enqueued] = []
    refused: list[Refusal] = []
    over: list[OverLimit] = []
    for index, new in enumerate(request.jobs):
        admission = admit(index, new, _standing(tx, new, request, batch), repeated=request.is_repeated)
        if isinstance(admission, Admitted):
            job = _store(tx, new, batch)
            enqueued.append(Enqueued(job, is_created=True))
            if admission.over is not None:
                turn = tx.turns.turn(job.queue, job.tenant)
                over.append(OverLimit(job.tenant, job.queue, turn.delayed + turn.ready, admission.over))
        elif isinstance(admission, Repeat):
            enqueued.append(Enqueued(_earlier(tx, new, admission.existing, batch), is_created=False))
        else:
            refused.append(admission)
    if refused:
        raise RefusedError(tuple(refused))
    return EnqueueReply(tuple(enqueued), (), tuple(over))


def _standing(tx: Tx, new: NewJob, request: EnqueueRequest, batch: _Batch) -> Standing:
    owner = new.tenant if new.id in batch.jobs else one_value(tx.db, _SQL.same_id, (new.id.bytes,))
    turn = tx.turns.find(new.queue, new.tenant)
    rules = tx.rules.queue(new.queue, tx.now)
    return Standing(
        is_tenant_known=not request.must_be_declared or _is_declared(tx, new.tenant),
        closed=_closed(tx, new),
        same_id=None if owner is None else new.id,
        is_id_foreign=owner is not None and owner != new.tenant,
        same_key=None if new.idempotency_key is None else _holder(tx, new.tenant, new.idempotency_key, batch),
        same_dedup=None if new.dedup_key is None else _duplicate(tx, new, new.dedup_key, batch),
        waiting=0 if turn is None else turn.delayed + turn.ready,
        limits=tx.rules.limits(new.queue, new.tenant, tx.now),
        queue_waiting=0 if rules.max_waiting is None else _queue_waiting(tx, new.queue, batch),
        max_waiting=rules.max_waiting,
    )


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
        return None if row is None else KeyHolder(UUID(bytes=row[0]), row[1])
    return found


def _duplicate(tx: Tx, new: NewJob, key: str, batch: _Batch) -> UUID | None:
    found = batch.dedup.get((new.tenant, new.task, key))
    if found is None:
        raw = one_value(tx.db, _SQL.same_dedup, (new.tenant, new.task, key))
        return None if raw is None else UUID(bytes=raw)
    return found


def _queue_waiting(tx: Tx, queue: str, batch: _Batch) -> int:
    if queue not in batch.waiting:
        tx.flush()
        batch.waiting[queue] = one_value(tx.db, _SQL.queue_waiting, (queue,))
    return batch.waiting[queue]


def _store(tx: Tx, new: NewJob, batch: _Batch) -> JobRecord:
    if new.idempotency_key is not None:
        tx.write(_SQL.key_in, new.tenant, new.idempotency_key, new.id.bytes, new.fingerprint)
        batch.keys[new.tenant, new.idempotency_key] = KeyHolder(new.id, new.fingerprint)
    if new.dedup_key is not None:
        tx.write(_SQL.dedup_in, new.tenant, new.task, new.dedup_key, new.id.bytes)
        batch.dedup[new.tenant, new.task, new.dedup_key] = new.id
    if new.queue in batch.waiting:
        batch.waiting[new.queue] += 1
    job = batch.jobs[new.id] = born(new, tx.now)
    bring_in(tx, job)
    return job


def _earlier(tx: Tx, new: NewJob, existing: UUID, batch: _Batch) -> JobRecord:
    """Give the job that answers for a repeat, or its husk if only the key is left (S13)."""
    job = batch.jobs.get(existing) or find_any(tx, (existing,)).get(existing)
    if job is not None:
        return job
    ((_, _, state, settled_at),) = all_rows(tx.db, _SQL.same_key, (new.tenant, new.idempotency_key))
    return msgspec.structs.replace(
        born(new, settled_at), id=existing, state=State(state), because=None, settled_at=settled_at
    )
