"""Move jobs into, between and out of the three homes, with the counts, keys and turns that follow (S50)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import msgspec

from fairlane.model.instants import Micros
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import State, is_finished
from fairlane.model.moves import beginning
from fairlane.store.contract.jobs import Created
from fairlane.store.sqlite.asking import one_row
from fairlane.store.sqlite.rows import (
    BODY_WIDTH,
    DEDUP_KEY,
    IDEMPOTENCY_KEY,
    LIVE_WIDTH,
    STATUS_WIDTH,
    Row,
    new_body,
    to_body,
    to_claim,
    to_record,
    to_status,
    to_text,
)
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.strands import Strand
from fairlane.store.sqlite.tx import Tx

_SQL = load("homes")


class Held(msgspec.Struct):
    """A live job as it was read: its number, its record, and what its claim holds beside it."""

    seq: int
    job: JobRecord
    strand: int
    gate: str | None = None
    is_alone: bool = False
    charged: Micros | None = None
    has_keys: bool = False


def read_live(row: Row) -> Held:
    """Read a row of `body` joined with `live` and the columns of a holding."""
    status = row[BODY_WIDTH : BODY_WIDTH + LIVE_WIDTH]
    strand, _, gate, is_alone, charged = row[BODY_WIDTH + LIVE_WIDTH :]
    has_keys = row[IDEMPOTENCY_KEY] is not None or row[DEDUP_KEY] is not None
    return Held(row[0], to_record(row[:BODY_WIDTH], status), strand, gate, bool(is_alone), charged, has_keys)


def find_live(tx: Tx, id: UUID) -> Held | None:
    """Give a hot job by its id."""
    row = one_row(tx.db, _SQL.live_by_id, (id.bytes,))
    return None if row is None else read_live(row)


def read_any(row: Row) -> JobRecord:
    """Read a row of `body` joined with all three homes, of which one is there."""
    live, rest = row[BODY_WIDTH : BODY_WIDTH + LIVE_WIDTH], row[BODY_WIDTH + LIVE_WIDTH :]
    body = row[:BODY_WIDTH]
    if live[0] is not None:
        return to_record(body, live)
    return to_record(body, rest[:STATUS_WIDTH] if rest[0] is not None else rest[STATUS_WIDTH:])


def find_any(tx: Tx, ids: Iterable[UUID]) -> dict[UUID, JobRecord]:
    """Give jobs by their ids from whatever home they are in."""
    found: dict[UUID, JobRecord] = {}
    for id in ids:
        row = one_row(tx.db, _SQL.any_by_id, (id.bytes,))
        if row is not None:
            found[id] = read_any(row)
    return found


def bring_in(tx: Tx, created: Mapping[bytes, Created]) -> None:
    """Write new jobs, by the bytes of their ids: their bodies, their rows in the hot home, their places."""
    bodies, rows, places = [], [], []
    strands: dict[tuple[str, str, str], Strand] = {}
    for seq, (id, one) in enumerate(created.items(), tx.take_seqs(len(created))):
        new = one.new
        where = (new.queue, new.tenant, new.task)
        strand = strands.get(where)
        if strand is None:
            strand = strands[where] = tx.turns.strand(tx.turns.turn(new.queue, new.tenant), new.task)
        strand.jobs += 1
        state, why, run_at, key, expires_at = beginning(new, tx.now)
        bodies.append(new_body(seq, id, new, tx.now, expires_at))
        rows.append((seq, state, why, run_at, key, strand.id, expires_at, new.queue))
        if state is State.READY:
            places.append((strand.id, key, id, seq))
            tx.turns.add_ready(strand, (key, id))
        else:
            strand.turn.delayed += 1
            strand.is_changed = strand.turn.is_changed = True
    tx.write_all(_SQL.body_in, bodies)
    tx.write_all(_SQL.live_new, rows)
    tx.write_all(_SQL.ready_in, places)


def move(tx: Tx, held: Held, after: JobRecord) -> JobRecord:
    """Write what a job has become, in the home of its new state."""
    before = held.job
    strand = tx.turns.strand_by_id(held.strand)
    if before.state is after.state is State.READY:
        _shift(tx, held, strand, after)
        return after
    _leave(tx, strand, before)
    if is_finished(after.state):
        tx.write(_SQL.live_out, held.seq)
        _bury(tx, held.seq, after)
        strand.jobs -= 1
        strand.is_changed = True
        free_keys(tx, after)
    else:
        gone = after.state is not State.RUNNING
        holding = (None, 0, None) if gone else (held.gate, held.is_alone, held.charged)
        tx.write(_SQL.live_set, *to_status(after), *to_claim(after), after.expires_at, *holding, held.seq)
        _enter(tx, strand, held.seq, after)
    return after


def _enter(tx: Tx, strand: Strand, seq: int, job: JobRecord) -> None:
    turn = strand.turn
    turn.is_changed = True
    if job.state is State.READY:
        tx.write(_SQL.ready_in, strand.id, job.sort_key, job.id.bytes, seq)
        tx.turns.add_ready(strand, (job.sort_key, job.id.bytes))
    elif job.state is State.DELAYED:
        turn.delayed += 1
    else:
        turn.running += 1


def _leave(tx: Tx, strand: Strand, job: JobRecord) -> None:
    turn = strand.turn
    turn.is_changed = True
    if job.state is State.READY:
        tx.write(_SQL.ready_out, strand.id, job.sort_key, job.id.bytes)
        tx.turns.take_ready(strand, (job.sort_key, job.id.bytes))
    elif job.state is State.DELAYED:
        turn.delayed -= 1
    else:
        turn.running -= 1


def _shift(tx: Tx, held: Held, strand: Strand, after: JobRecord) -> None:
    """Give a ready job another place: its tenant stays ready throughout, and keeps its turn."""
    old, new = (held.job.sort_key, after.id.bytes), (after.sort_key, after.id.bytes)
    tx.write(_SQL.live_set, *to_status(after), *to_claim(after), after.expires_at, None, 0, None, held.seq)
    if old != new:
        tx.write(_SQL.ready_out, strand.id, *old)
        tx.write(_SQL.ready_in, strand.id, *new, held.seq)
        tx.turns.shift_ready(strand, old, new)


def _bury(tx: Tx, seq: int, job: JobRecord) -> None:
    """Write a finished job's row into history or among the dead letters."""
    tx.tally[job.tenant, job.queue, job.state] += 1
    if job.state is State.DEAD:
        failures = [attempt.failure for attempt in job.attempts if attempt.failure is not None]
        error_class = failures[-1].error_class.value if failures else None
        tx.write(_SQL.dead_in, seq, *to_status(job), job.id.bytes, error_class)
    else:
        tx.write(_SQL.history_in, seq, *to_status(job))


def free_keys(tx: Tx, job: JobRecord) -> None:
    """Let a finished job's keys go: the idempotency key lives on for a while, the other is free at once."""
    if job.idempotency_key != to_text(job.id):
        ended = (job.state.value, job.settled_at)
        tx.write(_SQL.key_ended, *ended, job.tenant, job.idempotency_key, job.id.bytes)
    free_dedup(tx, job)


def free_dedup(tx: Tx, job: JobRecord) -> None:
    """Let a de-duplication key go, if it is this job's."""
    if job.dedup_key is not None:
        tx.write(_SQL.dedup_out, job.tenant, job.task, job.dedup_key, job.id.bytes)


def rewrite_body(tx: Tx, seq: int, job: JobRecord) -> None:
    """Write a body anew, after an edit or an erasure: the only times that one changes."""
    tx.write(_SQL.body_set, *to_body(seq, job)[5:], seq)


def rewrite_finished(tx: Tx, seq: int, job: JobRecord) -> None:
    """Write a finished job's row anew, where it is."""
    statement = _SQL.dead_set if job.state is State.DEAD else _SQL.history_set
    tx.write(statement, *to_status(job), seq)


def drop(tx: Tx, seq: int, job: JobRecord) -> None:
    """Remove a finished job altogether."""
    tx.tally[job.tenant, job.queue, job.state] -= 1
    tx.write(_SQL.dead_out if job.state is State.DEAD else _SQL.history_out, seq)
    tx.write(_SQL.body_out, seq)


def read_page(tx: Tx, statement: str, values: tuple[Any, ...]) -> list[tuple[int, JobRecord]]:
    """Read jobs of any home, with their numbers, by a statement that selects them in full."""
    return [(row[0], read_any(row)) for row in tx.db.execute(statement, values)]
