"""Idempotency and dedup keys: who holds one, taking them with a batch, releasing them (S13, S14).

An idempotency key outlives its job for its retention, so that repeats are answered; a dedup key is free again
when its job starts or is settled. Decides nothing: `admit` does.
"""

from __future__ import annotations

from uuid import UUID

import msgspec

from fairlane.model.job import JobRecord, NewJob
from fairlane.model.lifecycle.admission import KeyHolder
from fairlane.model.lifecycle.record_changes import new_record
from fairlane.model.lifecycle.states import State
from fairlane.store.sqlite.query import one_row, one_value
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_rows import to_text
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("idempotency")


class BatchKeys:
    """The keys of one batch: those that are stored, and those that its earlier jobs take."""

    def __init__(self, tx: Transaction) -> None:
        """Start with nothing taken."""
        self._tx = tx
        self._taken: dict[tuple[str, str], KeyHolder] = {}
        self._replaced: list[tuple[str, str]] = []
        self._dedup: dict[tuple[str, str, str], UUID] = {}

    def holder(self, new: NewJob) -> KeyHolder | None:
        """Return the job that has a new job's idempotency key."""
        key = new.idempotency_key
        if key is None:
            return None
        found = self._taken.get((new.tenant, key))
        if found is None:
            row = one_row(self._tx.db, _SQL.same_key, (new.tenant, key))
            return None if row is None else KeyHolder(UUID(bytes=row[0]), row[1], row[2] == State.DEAD)
        return found

    def duplicate(self, new: NewJob) -> UUID | None:
        """Return the job that has a new job's dedup key."""
        if new.dedup_key is None:
            return None
        key = (new.tenant, new.task, new.dedup_key)
        found = self._dedup.get(key)
        if found is None:
            raw = one_value(self._tx.db, _SQL.same_dedup, key)
            return None if raw is None else UUID(bytes=raw)
        return found

    def take(self, new: NewJob, *, replaces_dead: bool) -> None:
        """Give a new job its keys; `replaces_dead` takes the idempotency key from a dead job."""
        if new.idempotency_key is not None:
            key = (new.tenant, new.idempotency_key)
            self._taken[key] = KeyHolder(new.id, new.fingerprint)
            if replaces_dead:
                self._replaced.append(key)
        if new.dedup_key is not None:
            self._dedup[new.tenant, new.task, new.dedup_key] = new.id

    def write(self) -> None:
        """Write the keys that were taken."""
        if self._replaced:
            self._tx.write_all(_SQL.delete_key, self._replaced)
        keys = [(*key, holder.id.bytes, holder.fingerprint) for key, holder in self._taken.items()]
        self._tx.write_all(_SQL.insert_key, keys)
        self._tx.write_all(_SQL.insert_dedup, [(*key, id.bytes) for key, id in self._dedup.items()])


def tombstone(tx: Transaction, new: NewJob, id: UUID) -> JobRecord:
    """Return what is left of a pruned job that a repeat names: its id, state and end (S13)."""
    row = one_row(tx.db, _SQL.same_key, (new.tenant, new.idempotency_key))
    if row is None:
        message = f"job {id} has an idempotency key and no row for it"
        raise AssertionError(message)
    _, _, state, settled_at = row
    return msgspec.structs.replace(
        new_record(new, settled_at), id=id, state=State(state), because=None, settled_at=settled_at
    )


def release_keys(tx: Transaction, job: JobRecord) -> None:
    """Release a finished job's keys: the dedup key at once, the idempotency key after its retention."""
    if job.idempotency_key != to_text(job.id):
        ended = (job.state.value, job.settled_at)
        tx.write(_SQL.end_key, *ended, job.tenant, job.idempotency_key, job.id.bytes)
    release_dedup(tx, job)


def release_dedup(tx: Transaction, job: JobRecord) -> None:
    """Release a dedup key, if it is this job's."""
    if job.dedup_key is not None:
        tx.write(_SQL.delete_dedup, job.tenant, job.task, job.dedup_key, job.id.bytes)
