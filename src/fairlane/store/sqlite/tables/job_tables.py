"""Insert, move and delete jobs in `live`, `history` and `dead`, with all counts, keys and indexes (S50).

A job is one row in `body` and one row in exactly one of these tables, after every commit. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

import msgspec

from fairlane.model.instants import Micros
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.record_changes import initial_fields
from fairlane.model.lifecycle.states import State, is_finished
from fairlane.store.contract.jobs import Created
from fairlane.store.sqlite.jobs.idempotency import release_keys
from fairlane.store.sqlite.query import Values, one_row
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_rows import (
    BODY_WIDTH,
    DEDUP_KEY,
    IDEMPOTENCY_KEY,
    LIVE_WIDTH,
    STATE,
    STATUS_WIDTH,
    Row,
    body_of,
    editable,
    new_body,
    to_claim,
    to_finished,
    to_record,
    to_status,
)
from fairlane.store.sqlite.tables.letter_rows import new_letter
from fairlane.store.sqlite.tables.tenant_queue_rows import Strand
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("job_tables")


class LiveJob(msgspec.Struct):
    """A job in `live`: the number of its body, its record, and columns that the record lacks."""

    seq: int
    job: JobRecord
    strand: int
    gate: str | None = None
    charged: Micros | None = None
    has_keys: bool = False


def read_live(row: Row) -> LiveJob:
    """Read a row of a statement that selects `{live_job}`."""
    strand, gate, charged = row[BODY_WIDTH + LIVE_WIDTH :]
    has_keys = row[IDEMPOTENCY_KEY] is not None or row[DEDUP_KEY] is not None
    return LiveJob(row[0], to_record(row), strand, gate, charged, has_keys)


def find_live(tx: Transaction, id: UUID) -> LiveJob | None:
    """Return a live job by its id."""
    row = one_row(tx.db, _SQL.live_by_id, (id.bytes,))
    return None if row is None else read_live(row)


def read_any(row: Row) -> JobRecord:
    """Read a row of `body` joined with `live`, `history` and `dead`, of which one has a row."""
    if row[STATE] is not None:
        return to_record(row)
    finished = row[BODY_WIDTH + LIVE_WIDTH :]
    is_dead = finished[0] is None  # no row in `history`
    return to_finished(row[:BODY_WIDTH], finished[STATUS_WIDTH:] if is_dead else finished[:STATUS_WIDTH])


def find_any(tx: Transaction, ids: Iterable[UUID]) -> dict[UUID, JobRecord]:
    """Return jobs by their ids, whatever their states."""
    found: dict[UUID, JobRecord] = {}
    for id in ids:
        row = one_row(tx.db, _SQL.any_by_id, (id.bytes,))
        if row is not None:
            found[id] = read_any(row)
    return found


def insert_jobs(tx: Transaction, created: Mapping[bytes, Created]) -> None:
    """Insert new jobs, by the bytes of their ids, and count them."""
    bodies, rows, positions = [], [], []
    strands: dict[tuple[str, str, str], Strand] = {}
    for seq, (id, one) in enumerate(created.items(), tx.take_seqs(len(created))):
        new = one.new
        names = (new.queue, new.tenant, new.task)
        strand = strands.get(names)
        if strand is None:
            tenant_queue = tx.tenant_queues.tenant_queue(new.queue, new.tenant)
            strand = strands[names] = tx.tenant_queues.strand(tenant_queue, new.task)
        strand.jobs += 1
        state, why, run_at, key, expires_at = initial_fields(new, tx.now)
        bodies.append(new_body(seq, id, new, tx.now, expires_at))
        rows.append((seq, state, why, run_at, key, strand.id, expires_at, new.queue))
        if state is State.READY:
            positions.append((strand.id, key, id, seq))
            tx.tenant_queues.add_ready(strand, (key, id))
        else:
            strand.tenant_queue.delayed += 1
            strand.is_changed = strand.tenant_queue.is_changed = True
    tx.write_all(_SQL.insert_body, bodies)
    tx.write_all(_SQL.insert_live, rows)
    tx.write_all(_SQL.insert_ready, positions)


def move(tx: Transaction, live: LiveJob, after: JobRecord) -> JobRecord:
    """Write what a live job has become, in the table of its new state."""
    before = live.job
    strand = tx.tenant_queues.strand_by_id(live.strand)
    if before.state is after.state is State.READY:
        _shift(tx, live, strand, after)
        return after
    _leave(tx, strand, before)
    if is_finished(after.state):
        tx.write(_SQL.delete_live, live.seq)
        _insert_finished(tx, live.seq, after)
        if after.state is State.DEAD:
            tx.deaths.append(after)
        strand.jobs -= 1
        strand.is_changed = True
        release_keys(tx, after)
    else:
        _rewrite_live(tx, live, after)
        _enter(tx, strand, live.seq, after)
    return after


def _enter(tx: Transaction, strand: Strand, seq: int, job: JobRecord) -> None:
    """Count a job in its new state; give it a position if it is ready."""
    tenant_queue = strand.tenant_queue
    tenant_queue.is_changed = True
    if job.state is State.READY:
        tx.write(_SQL.insert_ready, strand.id, job.sort_key, job.id.bytes, seq)
        tx.tenant_queues.add_ready(strand, (job.sort_key, job.id.bytes))
    elif job.state is State.DELAYED:
        tenant_queue.delayed += 1
    else:
        tenant_queue.running += 1


def _leave(tx: Transaction, strand: Strand, job: JobRecord) -> None:
    """Count a job no longer in its old state; take its position away if it was ready."""
    tenant_queue = strand.tenant_queue
    tenant_queue.is_changed = True
    if job.state is State.READY:
        tx.write(_SQL.delete_ready, strand.id, job.sort_key, job.id.bytes)
        tx.tenant_queues.take_ready(strand, (job.sort_key, job.id.bytes))
    elif job.state is State.DELAYED:
        tenant_queue.delayed -= 1
    else:
        tenant_queue.running -= 1


def _shift(tx: Transaction, live: LiveJob, strand: Strand, after: JobRecord) -> None:
    """Move a ready job within its strand; its tenant stays in the ready index and keeps its place."""
    old, new = (live.job.sort_key, after.id.bytes), (after.sort_key, after.id.bytes)
    _rewrite_live(tx, live, after)
    if old != new:
        tx.write(_SQL.delete_ready, strand.id, *old)
        tx.write(_SQL.insert_ready, strand.id, *new, live.seq)
        tx.tenant_queues.shift_ready(strand, old, new)


def _rewrite_live(tx: Transaction, live: LiveJob, after: JobRecord) -> None:
    is_claimed = after.state is State.RUNNING
    claim = (live.gate, live.charged) if is_claimed else (None, None)
    tx.write(_SQL.update_live, live.seq, *to_status(after), *to_claim(after), after.expires_at, *claim)


def _insert_finished(tx: Transaction, seq: int, job: JobRecord) -> None:
    """Insert a finished job into `history` or `dead`; a dead one also gets a letter."""
    tx.tally[job.tenant, job.queue, job.state] += 1
    if job.state is State.DEAD:
        tx.write(_SQL.insert_dead, seq, *to_status(job))
        tx.write(_SQL.insert_letter, *new_letter(seq, job))
    else:
        tx.write(_SQL.insert_history, seq, *to_status(job))


def insert_finished(tx: Transaction, seq: int, job: JobRecord) -> None:
    """Insert a job that has ended elsewhere, or before."""
    tx.write(_SQL.insert_body, *body_of(seq, job))
    _insert_finished(tx, seq, job)


def rewrite_body(tx: Transaction, seq: int, job: JobRecord) -> None:
    """Overwrite a body after an edit or a scrub; at no other time does more change than its metadata."""
    tx.write(_SQL.update_body, seq, *editable(job))


def rewrite_metadata(tx: Transaction, seq: int, metadata: bytes) -> None:
    """Overwrite the metadata of a job that its handler has changed."""
    tx.write(_SQL.update_metadata, seq, metadata)


def rewrite_finished(tx: Transaction, seq: int, job: JobRecord) -> None:
    """Overwrite a finished job's row."""
    statement = _SQL.update_dead if job.state is State.DEAD else _SQL.update_history
    tx.write(statement, seq, *to_status(job))


def delete_finished(tx: Transaction, seq: int, job: JobRecord) -> None:
    """Delete a finished job."""
    tx.tally[job.tenant, job.queue, job.state] -= 1
    if job.state is State.DEAD:
        tx.write(_SQL.delete_dead, seq)
        tx.write(_SQL.delete_letter, seq)
    else:
        tx.write(_SQL.delete_history, seq)
    tx.write(_SQL.delete_body, seq)


def read_page(tx: Transaction, statement: str, values: Values) -> list[tuple[int, JobRecord]]:
    """Return jobs in any state, with the numbers of their bodies, by a statement that selects all columns."""
    return [(row[0], read_any(row)) for row in tx.db.execute(statement, values)]
