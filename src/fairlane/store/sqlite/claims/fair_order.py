"""Read tenants, strands and jobs in the fair order, a page of an index at a time. Decides nothing.

A claim changes the order while it reads: it serves a tenant, whose clock then advances. So each level is a
heap over a page-wise scan of its index. `_last_read` is the position up to which the index was read. The top
of the heap is the next one if it is not beyond that; else the next page is read first, because it may have a
lower one.
A tenant that was served is pushed again at its new clock, and `_seen` keeps the scan from adding it twice.
Entries of tenants whose clock has changed since are skipped when they reach the top.

Objects that the transaction has in memory are newer than the rows read, and take their place.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, Final, TypeAlias

from fairlane.store.sqlite.query import all_rows, json_array
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.columns import STRAND_COLUMNS, TENANT_QUEUE_COLUMNS
from fairlane.store.sqlite.tables.job_rows import ID, SORT_KEY
from fairlane.store.sqlite.tables.tenant_queue_rows import Strand, TenantQueue
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("claims")

_Row: TypeAlias = tuple[Any, ...]

_TENANT_PAGE: Final = 64
_STRAND_PAGE: Final = 8
_FIRST_JOBS_PAGE: Final = 2
_MAX_JOBS_PAGE: Final = 64
_BEFORE_ALL: Final = (-(2**63), b"")
_STRAND_WIDTH: Final = len(STRAND_COLUMNS)
_HEAD: Final = slice(STRAND_COLUMNS.index("head_key"), STRAND_COLUMNS.index("head_id") + 1)
_CLOCK: Final = slice(TENANT_QUEUE_COLUMNS.index("vt"), TENANT_QUEUE_COLUMNS.index("ready_since") + 1)


def position_of(row: _Row) -> tuple[int, bytes]:
    """Return the position of a job in its strand."""
    return row[SORT_KEY], row[ID]


class HeadPrefetch:
    """The first jobs of tenants that will be served, read in one query; singly they cost three times that.

    Only for tenants with one open strand, which most have: their first job is certain. Of the job behind it
    only the position is read.
    """

    def __init__(self, tx: Transaction) -> None:
        """Start with nothing read."""
        self._tx = tx
        self._rows: dict[int, tuple[_Row, tuple[int, bytes] | None]] = {}

    def fetch(self, tenant_queues: list[TenantQueue]) -> None:
        """Read the first jobs of these tenants, unless there is only one tenant."""
        plain = {one.id: one for one in tenant_queues if one.open_strands == 1}
        if len(plain) > 1:
            for row in all_rows(self._tx.db, _SQL.heads, (json_array(plain),)):
                tenant_queue = plain[row[1]]
                if row[0] not in tenant_queue.strands:
                    self._tx.tenant_queues.strand_of(row[:_STRAND_WIDTH], tenant_queue)
                following = None if row[-1] is None else row[-2:]
                self._rows[row[0]] = (row[_STRAND_WIDTH:-2], following)

    def jobs(self, strand: Strand) -> StrandJobs:
        """Return the jobs of a strand; the first needs no query if it was read and is still the head."""
        first, following = self._rows.pop(strand.id, (None, None))
        if first is None or position_of(first) != strand.head:
            return StrandJobs(self._tx, strand)
        return StrandJobs(self._tx, strand, first, following)


class StrandJobs:
    """The ready jobs of one strand in order, read in growing pages and decoded only when taken."""

    def __init__(
        self,
        tx: Transaction,
        strand: Strand,
        first: _Row | None = None,
        following: tuple[int, bytes] | None = None,
    ) -> None:
        """Start with the first row, and the position of the next, if they were prefetched."""
        self._tx = tx
        self._strand = strand
        self._rows: list[_Row] = [] if first is None else [first]
        self._last_read = _BEFORE_ALL if first is None else position_of(first)
        self._following = following
        self._page = _FIRST_JOBS_PAGE
        self._is_all = False

    def first(self) -> _Row | None:
        """Return the row of the next job, without taking it."""
        if not self._rows and not self._is_all:
            rows = all_rows(self._tx.db, _SQL.jobs, (self._strand.id, *self._last_read, self._page))
            self._is_all = len(rows) < self._page
            self._page = min(_MAX_JOBS_PAGE, self._page * 4)
            self._rows = rows[::-1]
            self._following = None
            if rows:
                self._last_read = position_of(rows[-1])
        return self._rows[-1] if self._rows else None

    def position(self) -> tuple[int, bytes] | None:
        """Return the position of the next job, without a query if it was read."""
        if self._following is not None and not self._rows:
            return self._following
        first = self.first()
        return None if first is None else position_of(first)

    def take(self) -> _Row:
        """Take the row that `first` returned."""
        return self._rows.pop()


class StrandHeap:
    """The open strands of one tenant queue, the lowest head first."""

    def __init__(self, tx: Transaction, tenant_queue: TenantQueue, prefetch: HeadPrefetch) -> None:
        """Start with the strands in memory, if they are all of them."""
        self._tx = tx
        self._tenant_queue = tenant_queue
        self._prefetch = prefetch
        self._heap: list[tuple[tuple[int, bytes], int, Strand]] = []
        self._last_read: tuple[int, bytes] = _BEFORE_ALL
        known = tx.tenant_queues.open_strands(tenant_queue)
        self._is_all = known is not None
        self._jobs: dict[int, StrandJobs] = {}
        for strand in known or ():
            self.push(strand)

    def push(self, strand: Strand) -> None:
        """Add a strand at the place of its head, unless it is closed."""
        if strand.head is not None and strand.is_open:
            heappush(self._heap, (strand.head, strand.id, strand))

    def first(self) -> Strand:
        """Return the strand with the lowest head."""
        while not self._heap or (not self._is_all and self._heap[0][0] > self._last_read):
            rows = all_rows(
                self._tx.db, _SQL.strands, (self._tenant_queue.id, *self._last_read, _STRAND_PAGE)
            )
            self._is_all = len(rows) < _STRAND_PAGE
            for row in rows:
                self.push(self._tx.tenant_queues.strand_of(row, self._tenant_queue))
            if rows:
                self._last_read = rows[-1][_HEAD]
        return self._heap[0][2]

    def drop(self) -> None:
        """Remove the strand that `first` returned."""
        heappop(self._heap)

    def jobs(self, strand: Strand) -> StrandJobs:
        """Return the jobs of a strand."""
        found = self._jobs.get(strand.id)
        if found is None:
            found = self._jobs[strand.id] = self._prefetch.jobs(strand)
        return found


class TenantHeap:
    """The ready tenants of one queue, the lowest clock first."""

    def __init__(
        self, tx: Transaction, queue: str, prefetch: HeadPrefetch, *, only_idle: bool, only_tenant: str | None
    ) -> None:
        """Start empty. `only_idle` skips tenants with running jobs, `only_tenant` all but this one."""
        self._prefetch = prefetch
        self._tx = tx
        self._queue = queue
        self._only_tenant = only_tenant
        self._only_idle = only_idle
        self._heap: list[tuple[int, int, TenantQueue]] = []
        self._seen: set[int] = set()
        self._last_read = (-1, -1)
        self._is_all = False

    def push(self, tenant_queue: TenantQueue) -> None:
        """Add a tenant at the place of its clock, unless it must be skipped."""
        self._seen.add(tenant_queue.id)
        if not tenant_queue.is_ready or (self._only_idle and tenant_queue.running):
            return
        if self._only_tenant is None or self._only_tenant == tenant_queue.tenant:
            heappush(self._heap, (tenant_queue.vt, tenant_queue.ready_since, tenant_queue))

    def first(self, left: int) -> TenantQueue | None:
        """Return the tenant with the lowest clock; `left` jobs are still to be claimed."""
        while True:
            while not self._is_all and (not self._heap or self._heap[0][:2] > self._last_read):
                self._read(left)
            if not self._heap:
                return None
            vt, since, tenant_queue = self._heap[0]
            if tenant_queue.is_ready and (tenant_queue.vt, tenant_queue.ready_since) == (vt, since):
                return tenant_queue
            heappop(self._heap)

    def drop(self) -> None:
        """Remove the tenant that `first` returned."""
        heappop(self._heap)

    def _read(self, left: int) -> None:
        if self._only_tenant is not None:
            tenant_queue = self._tx.tenant_queues.find(self._queue, self._only_tenant)
            self._is_all = True
            if tenant_queue is not None:
                self.push(tenant_queue)
            return
        statement = _SQL.idle_tenant_queues if self._only_idle else _SQL.tenant_queues
        rows = all_rows(self._tx.db, statement, (self._queue, *self._last_read, _TENANT_PAGE))
        self._is_all = len(rows) < _TENANT_PAGE
        found = [one for one in map(self._tx.tenant_queues.tenant_queue_of, rows) if one.id not in self._seen]
        for tenant_queue in found:
            self.push(tenant_queue)
        self._tx.policies.preload([one.tenant for one in found[:left]])
        self._prefetch.fetch(found[:left])
        if rows:
            self._last_read = rows[-1][_CLOCK]
