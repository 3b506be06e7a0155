"""The tenant queues and strands of a transaction: found, counted, parked, written back (S41, S42).

A `TenantQueue` is one tenant in one queue, a `Strand` one of its tasks. They are read when first needed,
changed in memory and written back in bulk. `model.scheduling.fairness` decides the fair order; `refresh`
alone decides whether a tenant queue is in the ready index.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import apsw
import msgspec

from fairlane.model.instants import Instant
from fairlane.model.scheduling.fairness import activate, is_forgettable
from fairlane.store.sqlite.query import all_rows, each_row, json_array, one_row, one_value, write_many
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.columns import STRAND_COLUMNS
from fairlane.store.sqlite.tables.counters import Counters
from fairlane.store.sqlite.tables.tenant_queue_rows import Block, RowCache, Strand, TenantQueue

_SQL = load("tenant_queues")
_STRAND_WIDTH: Final = len(STRAND_COLUMNS)


class TenantQueues:
    """The tenant queues and strands of one transaction, over a cache of those of earlier ones."""

    def __init__(self, db: apsw.Connection, counters: Counters) -> None:
        """Start empty."""
        self._db = db
        self._counters = counters
        self._tenant_queues: dict[int, TenantQueue] = {}
        self._by_name: dict[tuple[str, str], TenantQueue | None] = {}  # None: there is no such row
        self._strands: dict[int, Strand] = {}
        self._by_task: dict[tuple[int, str], Strand | None] = {}
        self._cached_tenant_queues: RowCache[tuple[str, str], TenantQueue] = RowCache()
        self._cached_strands: RowCache[tuple[int, str], Strand] = RowCache()
        self._tenant_queues_by_id: RowCache[int, TenantQueue] = RowCache()
        self._strands_by_id: RowCache[int, Strand] = RowCache()
        self._caches: tuple[RowCache[Any, Any], ...] = (
            self._cached_tenant_queues, self._cached_strands, self._tenant_queues_by_id, self._strands_by_id,
        )  # fmt: skip
        self._lowest: dict[str, int | None] = {}
        self._next: dict[str, int] = {}
        self._sequence = 0

    def cache_rows(self) -> None:
        """Keep the rows of this transaction for the next one."""
        if any(cache.is_full for cache in self._caches):
            self.drop_cache()  # all caches: a cached tenant queue refers to its strands
        self._cached_tenant_queues.add(self._by_name)
        self._cached_strands.add(self._by_task)
        self._tenant_queues_by_id.add(self._tenant_queues)
        self._strands_by_id.add(self._strands)

    def drop_cache(self) -> None:
        """Empty the caches."""
        for cache in self._caches:
            cache.clear()
        for tenant_queue in self._tenant_queues.values():
            tenant_queue.strands.clear()

    def clear(self) -> None:
        """Drop the rows of this transaction; the caches stay."""
        for known in (self._tenant_queues, self._by_name, self._strands, self._by_task):
            known.clear()
        self._lowest.clear()
        self._next.clear()
        self._sequence = 0

    # ── finding ───────────────────────────────────────────────────────────────

    def tenant_queue_of(self, row: tuple[Any, ...]) -> TenantQueue:
        """Return the tenant queue of a row; an object that exists already is newer than the row."""
        return self._known_tenant_queue(row[0]) or self._enter(TenantQueue(row))

    def strand_of(self, row: tuple[Any, ...], tenant_queue: TenantQueue) -> Strand:
        """Return the strand of a row; an object that exists already is newer than the row."""
        return self._strands.get(row[0]) or self._enter_strand(Strand(row, tenant_queue))

    def open_strands(self, tenant_queue: TenantQueue) -> list[Strand] | None:
        """Return the open strands of a tenant queue if all are in memory; None if they must be read."""
        found = [strand for strand in tenant_queue.strands.values() if strand.is_open]
        if len(found) != tenant_queue.open_strands:
            return None
        return [self._enter_strand(strand) for strand in found]

    def _known_tenant_queue(self, number: int) -> TenantQueue | None:
        tenant_queue = self._tenant_queues.get(number)
        if tenant_queue is None and (tenant_queue := self._tenant_queues_by_id.get(number)) is not None:
            self._enter(tenant_queue)
        return tenant_queue

    def _enter(self, tenant_queue: TenantQueue) -> TenantQueue:
        self._tenant_queues[tenant_queue.id] = tenant_queue
        self._by_name[tenant_queue.queue, tenant_queue.tenant] = tenant_queue
        return tenant_queue

    def _enter_strand(self, strand: Strand) -> Strand:
        self._strands[strand.id] = self._by_task[strand.tenant_queue.id, strand.task] = strand
        strand.tenant_queue.strands[strand.id] = strand
        return strand

    def preload(self, names_and_tasks: set[tuple[str, str, str]]) -> None:
        """Load the tenant queues and strands of many (queue, tenant, task), in two reads at most."""
        names = {(queue, tenant) for queue, tenant, _ in names_and_tasks} - self._by_name.keys()
        self._by_name |= self._cached_tenant_queues.get_many(names)
        self._tenant_queues |= {one.id: one for one in map(self._by_name.get, names) if one is not None}
        unread = names - self._by_name.keys()
        self._by_name |= dict.fromkeys(unread)
        for row in each_row(self._db, _SQL.tenant_queue_named, unread):
            self.tenant_queue_of(row)
        found = ((self._by_name[queue, tenant], task) for queue, tenant, task in names_and_tasks)
        self._preload_strands({(one.id, task) for one, task in found if one is not None})

    def _preload_strands(self, tasks: set[tuple[int, str]]) -> None:
        tasks -= self._by_task.keys()
        for key, strand in self._cached_strands.get_many(tasks).items():
            self._by_task[key] = strand
            if strand is not None:
                strand.tenant_queue = self._tenant_queues[key[0]]
                self._enter_strand(strand)
        unread = tasks - self._by_task.keys()
        self._by_task |= dict.fromkeys(unread)
        for row in each_row(self._db, _SQL.strand_named, unread):
            self.strand_of(row, self._tenant_queues[row[1]])

    def find(self, queue: str, tenant: str) -> TenantQueue | None:
        """Return a tenant queue, or None if there is none."""
        if (queue, tenant) not in self._by_name:
            row = one_row(self._db, _SQL.tenant_queue_named, (queue, tenant))
            return None if row is None else self.tenant_queue_of(row)
        return self._by_name[queue, tenant]

    def tenant_queue(self, queue: str, tenant: str) -> TenantQueue:
        """Return a tenant queue; a new one if there is none."""
        tenant_queue = self.find(queue, tenant)
        if tenant_queue is None:
            number = self._take_number("tenant_queue", _SQL.next_tenant_queue)
            tenant_queue = self._enter(TenantQueue.new(number, queue, tenant))
        return tenant_queue

    def strand(self, tenant_queue: TenantQueue, task: str) -> Strand:
        """Return a strand; a new one if there is none."""
        strand = self._by_task.get((tenant_queue.id, task))
        if strand is None:
            is_read = tenant_queue.is_new or (tenant_queue.id, task) in self._by_task
            row = None if is_read else one_row(self._db, _SQL.strand_named, (tenant_queue.id, task))
            if row is not None:
                return self.strand_of(row, tenant_queue)
            number = self._take_number("strand", _SQL.next_strand)
            strand = self._enter_strand(Strand.new(number, tenant_queue, task))
        return strand

    def strand_by_id(self, number: int) -> Strand:
        """Return the strand of a live job."""
        return self._strands.get(number) or self.strands_by_id([number])[0]

    def strands_by_id(self, numbers: Iterable[int]) -> list[Strand]:
        """Return the strands of live jobs, in one read at most."""
        found = {number: self._strands.get(number) or self._cached_strand(number) for number in numbers}
        unread = [number for number, strand in found.items() if strand is None]
        if unread:
            for row in all_rows(self._db, _SQL.strands_with_tenant_queues, (json_array(unread),)):
                tenant_queue = self.tenant_queue_of(row[_STRAND_WIDTH:])
                found[row[0]] = self.strand_of(row[:_STRAND_WIDTH], tenant_queue)
        return [strand for strand in found.values() if strand is not None]

    def _cached_strand(self, number: int) -> Strand | None:
        strand = self._strands_by_id.get(number)
        tenant_queue = None if strand is None else self._known_tenant_queue(strand.tenant_queue.id)
        if strand is None or tenant_queue is None:
            return None
        strand.tenant_queue = tenant_queue
        return self._enter_strand(strand)

    def _take_number(self, table: str, statement: str) -> int:
        number = self._next.get(table) or int(one_value(self._db, statement))
        self._next[table] = number + 1
        return number

    # ── changing ──────────────────────────────────────────────────────────────

    def add_ready(self, strand: Strand, position: tuple[int, bytes]) -> None:
        """Count a job that became ready. The caller inserts its row in `ready`."""
        if strand.ready:  # the strand is open already, so that the ready index does not change
            strand.ready += 1
            strand.tenant_queue.ready += 1
            if strand.head is None or position < strand.head:
                strand.head = position
            strand.is_changed = strand.tenant_queue.is_changed = True
            return
        was_open = strand.is_open
        strand.ready += 1
        strand.tenant_queue.ready += 1
        if strand.head is None or position < strand.head:
            strand.head = position
        self._count_open(strand, was_open=was_open)

    def take_ready(self, strand: Strand, position: tuple[int, bytes]) -> None:
        """Count a job that is no longer ready. The caller deletes its row in `ready`."""
        was_open = strand.is_open
        strand.ready -= 1
        strand.tenant_queue.ready -= 1
        if strand.head == position:
            strand.is_head_stale = True
        if not strand.ready:
            strand.parked, strand.head, strand.is_head_stale = None, None, False
        self._count_open(strand, was_open=was_open)

    def take_head(
        self, strand: Strand, position: tuple[int, bytes], following: tuple[int, bytes] | None
    ) -> None:
        """Count the head of a strand as claimed. The caller has read which job follows."""
        if following is None:
            self.take_ready(strand, position)
            return
        # The strand stays open while a ready job remains.
        strand.ready -= 1
        strand.tenant_queue.ready -= 1
        strand.head = following
        strand.is_changed = strand.tenant_queue.is_changed = True

    def shift_ready(self, strand: Strand, old: tuple[int, bytes], new: tuple[int, bytes]) -> None:
        """Move a ready job within its strand. The caller writes its rows in `ready`."""
        strand.is_changed = True
        if strand.head == old:
            strand.is_head_stale = True
        elif strand.head is None or new < strand.head:
            strand.head = new

    def park(self, what: TenantQueue | Strand, block: Block) -> None:
        """Take a tenant queue or strand out of the ready index, and keep its place in the order."""
        tenant_queue = what if isinstance(what, TenantQueue) else what.tenant_queue
        block = msgspec.structs.replace(block, vt=tenant_queue.vt, ready_since=tenant_queue.ready_since)
        self._set_parked(what, block)

    def unpark(self, what: TenantQueue | Strand) -> None:
        """Put a tenant queue or strand back into the ready index."""
        self._set_parked(what, None)

    def _set_parked(self, what: TenantQueue | Strand, parked: Block | None) -> None:
        if isinstance(what, TenantQueue):
            what.parked = parked
            self.refresh(what)
        else:
            was_open = what.is_open
            what.parked = parked
            self._count_open(what, was_open=was_open)

    def _count_open(self, strand: Strand, *, was_open: bool) -> None:
        """Correct the count of open strands after a change that may have opened or closed one."""
        strand.is_changed = True
        strand.tenant_queue.open_strands += strand.is_open - was_open
        self.refresh(strand.tenant_queue)

    def refresh(self, tenant_queue: TenantQueue) -> None:
        """Put a tenant queue into the ready index or take it out, as its jobs and parks demand.

        A tenant that enters the index gets a clock of at least the queue's virtual time: idle time earns no
        credit.
        """
        if not tenant_queue.ready:
            tenant_queue.ready_since, tenant_queue.parked = 0, None
        elif not tenant_queue.ready_since:
            tenant_queue.ready_since = self._next_sequence()
        is_ready = tenant_queue.parked is None and tenant_queue.open_strands > 0
        if is_ready and not tenant_queue.is_ready:
            tenant_queue.vt = activate(tenant_queue.vt, self.virtual_now(tenant_queue.queue))
            lowest, vt = self._lowest.get(tenant_queue.queue), tenant_queue.vt
            self._lowest[tenant_queue.queue] = vt if lowest is None else min(lowest, vt)
        elif tenant_queue.is_ready and not is_ready:
            self._lowest.pop(tenant_queue.queue, None)
        tenant_queue.is_ready = is_ready
        tenant_queue.is_changed = True  # last: `virtual_now` writes all rows that have changed so far

    def charge(self, tenant_queue: TenantQueue, amount: int) -> None:
        """Advance a tenant's clock."""
        tenant_queue.vt += amount
        tenant_queue.is_changed = True
        self._lowest.pop(tenant_queue.queue, None)

    def virtual_now(self, queue: str) -> int:
        """Return a queue's virtual time: the lowest clock in the ready index, and never less than the floor.

        Exact: changes of this transaction are written before the index is read.
        """
        floor = self._counters.queues[queue].value
        if queue not in self._lowest:
            self._write_tenant_queues()
            self._lowest[queue] = one_value(self._db, _SQL.lowest, (queue,))
        lowest = self._lowest[queue]
        return floor if lowest is None else max(floor, lowest)

    def raise_floor(self, queue: str, floor: int) -> None:
        """Raise the floor of a queue's virtual time; it never falls."""
        row = self._counters.queues[queue]
        if floor > row.value:
            row.value, row.is_changed = floor, True

    def _next_sequence(self) -> int:
        if not self._sequence:
            self._sequence = int(one_value(self._db, _SQL.sequence) or 0)
        self._sequence += 1
        return self._sequence

    # ── writing ───────────────────────────────────────────────────────────────

    def flush(self, now: Instant) -> None:
        """Write changed rows, delete empty ones.

        An empty tenant queue stays while its clock or its rate still counts against the tenant.
        """
        self._write_strands()
        self._write_tenant_queues()
        self._delete_empty(now)
        if self._sequence:
            self._db.execute(_SQL.update_sequence, (self._sequence,))

    def _write_strands(self) -> None:
        """Write changed strands. Stale heads are read from `ready`, whose rows must have been written."""
        changed = [strand for strand in self._strands.values() if strand.is_changed]
        for strand in changed:
            if strand.is_head_stale:
                strand.head = one_row(self._db, _SQL.head, (strand.id,))
                strand.is_head_stale = False
        new, moved, counted = [], [], []
        for strand in changed:
            values = strand.values()
            if strand.is_new:
                owner = strand.tenant_queue
                new.append((strand.id, owner.id, owner.queue, strand.task, *values))
            elif values[2:] != strand.stored[2:]:
                moved.append((strand.id, *values))
            else:  # only columns without an index
                counted.append((strand.id, *values[:2]))
            strand.stored = values
        self._put(_SQL.insert_strand, new)
        self._put(_SQL.update_strand, moved)
        self._put(_SQL.update_strand_counts, counted)
        self._put(_SQL.delete_strand, [(s.id,) for s in changed if not s.jobs])
        for strand in changed:
            strand.is_changed = strand.is_new = False
            if not strand.jobs:
                del self._strands[strand.id]
                strand.tenant_queue.strands.pop(strand.id, None)
                self._strands_by_id.remove(strand.id)
                self._by_task[strand.tenant_queue.id, strand.task] = None

    def _write_tenant_queues(self) -> None:
        changed = [one for one in self._tenant_queues.values() if one.is_changed]
        new, moved, counted = [], [], []
        for tenant_queue in changed:
            values = tenant_queue.values()
            if tenant_queue.is_new:
                new.append((tenant_queue.id, tenant_queue.queue, tenant_queue.tenant, *values))
            elif values[:3] != tenant_queue.stored[:3] or values[6:] != tenant_queue.stored[6:]:
                moved.append((tenant_queue.id, *values))
            else:  # only columns without an index
                counted.append((tenant_queue.id, *values[3:6]))
            tenant_queue.stored = values
            tenant_queue.is_changed = tenant_queue.is_new = False
        self._put(_SQL.insert_tenant_queue, new)
        self._put(_SQL.update_tenant_queue, moved)
        self._put(_SQL.update_tenant_queue_counts, counted)

    def _delete_empty(self, now: Instant) -> None:
        empty = [
            one
            for one in self._tenant_queues.values()
            if not (one.delayed or one.ready or one.running)
            and one.next_allowed_at <= now
            and is_forgettable(one.vt, self._counters.queues[one.queue].value)
        ]
        self._put(_SQL.delete_tenant_queue, [(tenant_queue.id,) for tenant_queue in empty])
        for tenant_queue in empty:
            del self._tenant_queues[tenant_queue.id]
            self._tenant_queues_by_id.remove(tenant_queue.id)
            self._by_name[tenant_queue.queue, tenant_queue.tenant] = None

    def _put(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            write_many(self._db, statement, rows)
