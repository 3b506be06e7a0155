"""Compare places in line and counters of a tenant queue with its jobs, and make them anew (S90)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from fairlane.model.lifecycle.states import State
from fairlane.store.contract.repair import (
    MAX_COMPARED,
    Flaw,
    RepairReply,
    RepairRequest,
    repair_entries,
    repair_reply,
)
from fairlane.store.sqlite.query import all_rows
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.tenant_queue_rows import Strand, TenantQueue
from fairlane.store.sqlite.transaction import Transaction

_UPKEEP = load("upkeep")
_JOBS = load("job_tables")


class UnfinishedJob(NamedTuple):
    """What places and counters are derived from."""

    seq: int
    state: str
    sort_key: int
    strand: int
    id: bytes
    task: str


def repair(tx: Transaction, request: RepairRequest) -> RepairReply:
    """Compare a tenant queue with its jobs. Writes only if the request restores and something is wrong."""
    if not request.scope.covers(request.tenant):
        return RepairReply(0)
    rows = all_rows(tx.db, _UPKEEP.unfinished_of, (request.tenant, request.queue, MAX_COMPARED + 1))
    if len(rows) > MAX_COMPARED:
        return RepairReply(None)
    jobs = [UnfinishedJob(*row) for row in rows]
    tenant_queue = tx.tenant_queues.find(request.queue, request.tenant)
    strands = [] if tenant_queue is None else _strands(tx, tenant_queue)
    reply = repair_reply(request, len(jobs), _flaws(tx, tenant_queue, strands, jobs))
    if reply.is_restored:
        _restore(tx, tx.tenant_queues.tenant_queue(request.queue, request.tenant), strands, jobs)
        tx.append("audit", repair_entries(request.operation, request))
        tx.hint(request.queue)
    return reply


def _strands(tx: Transaction, tenant_queue: TenantQueue) -> list[Strand]:
    rows = all_rows(tx.db, _UPKEEP.strands_of, (tenant_queue.id,))
    return [tx.tenant_queues.strand_of(row, tenant_queue) for row in rows]


def _flaws(
    tx: Transaction, tenant_queue: TenantQueue | None, strands: list[Strand], jobs: list[UnfinishedJob]
) -> Iterator[Flaw]:
    by_state = Counter(job.state for job in jobs)
    stored = (0, 0, 0)
    if tenant_queue is not None:
        stored = (tenant_queue.delayed, tenant_queue.ready, tenant_queue.running)
    for state, number in zip((State.DELAYED, State.READY, State.RUNNING), stored, strict=True):
        if number != by_state[state.value]:
            yield Flaw(state.value, number, by_state[state.value])  # type: ignore[arg-type]
    yield from _places(tx, tenant_queue, strands, jobs)
    if tenant_queue is not None:
        open_strands = sum(_is_open(strand, jobs) for strand in strands)
        is_ready = tenant_queue.parked is None and open_strands > 0
        counted = (tenant_queue.open_strands, bool(tenant_queue.is_ready))
        if counted != (open_strands, is_ready) or not _are_counted(strands, jobs):
            yield Flaw("order", int(tenant_queue.is_ready), int(is_ready))


def _places(
    tx: Transaction, tenant_queue: TenantQueue | None, strands: list[Strand], jobs: list[UnfinishedJob]
) -> Iterator[Flaw]:
    """Compare the lines of the strands with the ready jobs."""
    names = {strand.id: strand.task for strand in strands}
    rows = () if tenant_queue is None else tx.db.execute(_UPKEEP.places_of, (tenant_queue.id,))
    there = {(names.get(strand), sort_key, id) for strand, sort_key, id in rows}
    wanted = {(job.task, job.sort_key, job.id) for job in jobs if job.state == State.READY.value}
    for *_, id in wanted - there:
        yield Flaw("ready", 0, 1, UUID(bytes=id))
    for *_, id in there - wanted:
        yield Flaw("ready", 1, 0, UUID(bytes=id))


def _are_counted(strands: list[Strand], jobs: list[UnfinishedJob]) -> bool:
    """Whether each job is of the strand of its task, and the strands count and begin as their jobs say."""
    by_id = {strand.id: strand for strand in strands}
    if any(job.strand not in by_id or by_id[job.strand].task != job.task for job in jobs):
        return False
    for strand in strands:
        own = [job for job in jobs if job.strand == strand.id]
        ready = [(job.sort_key, job.id) for job in own if job.state == State.READY.value]
        if (strand.jobs, strand.ready, strand.head) != (len(own), len(ready), min(ready, default=None)):
            return False
    return True


def _is_open(strand: Strand, jobs: list[UnfinishedJob]) -> bool:
    has_ready = any(job.strand == strand.id and job.state == State.READY.value for job in jobs)
    return has_ready and strand.parked is None


def _restore(
    tx: Transaction, tenant_queue: TenantQueue, strands: list[Strand], jobs: list[UnfinishedJob]
) -> None:
    """Make strands, places and counters anew, as if the jobs came in now; the virtual time stays."""
    vt, was_ready = tenant_queue.vt, bool(tenant_queue.is_ready)
    tx.db.execute(_UPKEEP.delete_places_of, (tenant_queue.id,))
    for strand in strands:
        strand.jobs = strand.ready = 0
        strand.head, strand.parked, strand.is_changed = None, None, True
    tenant_queue.delayed = tenant_queue.ready = tenant_queue.running = tenant_queue.open_strands = 0
    tenant_queue.parked, tenant_queue.is_ready, tenant_queue.is_changed = None, 0, True
    places = []
    for job in jobs:
        strand = tx.tenant_queues.strand(tenant_queue, job.task)
        strand.jobs += 1
        strand.is_changed = True
        if strand.id != job.strand:
            tx.write(_UPKEEP.move_to_strand, job.seq, strand.id)
        if job.state == State.READY.value:
            places.append((strand.id, job.sort_key, job.id, job.seq))
            tx.tenant_queues.add_ready(strand, (job.sort_key, job.id))
        elif job.state == State.DELAYED.value:
            tenant_queue.delayed += 1
        else:
            tenant_queue.running += 1
    tx.write_all(_JOBS.insert_ready, places)
    tx.tenant_queues.refresh(tenant_queue)
    if was_ready:
        tenant_queue.vt = vt  # it never left the fair order
