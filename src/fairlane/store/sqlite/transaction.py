"""One transaction as verbs see it: the connection, the instant, cached rows, pending writes.

Knows no verb. Writes are collected and sent in bulk by `flush`, which runs after every verb and before a verb
reads rows that it may have written itself. Cached rows outlive a transaction only while a version number
proves that they are still current: policies have a version of their own, tenant queues use that of the file.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, Final

import apsw
import msgspec

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.journal.entries import JournalName, NewEntry
from fairlane.model.journal.facts import deaths
from fairlane.model.lifecycle.states import State
from fairlane.store.sqlite.policies.policy_cache import PolicyCache
from fairlane.store.sqlite.query import one_value, write_many
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.breakers import BreakerTable
from fairlane.store.sqlite.tables.budgets import BudgetRows
from fairlane.store.sqlite.tables.counters import Counters
from fairlane.store.sqlite.tables.tenant_queues import TenantQueues

_SQL = load("transaction")


MAX_RECENT_CLAIMS: Final = 25_000
"""More than any worker holds. A full cache is emptied, so that claims which were lost do not pile up."""


class RecentClaim(msgspec.Struct, frozen=True, gc=False):
    """A claim that this writer has made: all that settling it as a success needs."""

    seq: int
    strand: int
    job: JobRecord


class Transaction:
    """What a verb works with.

    `recent_claims` caches claims by their job's id as an integer. Such a claim may be lost or settled by now:
    whoever uses one must ask the file whether it still stands. `deaths` are the jobs that have died since the
    last flush, which makes events of them.
    """

    def __init__(self, db: apsw.Connection) -> None:
        """Start with empty caches. A transaction object belongs to one connection and is used again."""
        self.db = db
        self.now: Instant = 0
        self.policies = PolicyCache(db)
        self.counters = Counters(db)
        self.breakers = BreakerTable(db)
        self.tenant_queues = TenantQueues(db, self.counters)
        self.budgets = BudgetRows(db)
        self.recent_claims: dict[int, RecentClaim] = {}
        self.tally: Counter[tuple[str, str, State]] = Counter()
        self.deaths: list[JobRecord] = []
        self._writes: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self._next_seq = 0
        self._version = -1
        self._queues: set[str] = set()
        self._workers: set[str] = set()

    def begin(self, now: Instant) -> None:
        """Start afresh; drop cached tenant queues if another connection has written since."""
        self.now = now
        self.policies.drop_if_stale()
        version = one_value(self.db, "PRAGMA data_version")
        if version != self._version:
            self.tenant_queues.drop_cache()
            self._version = version
        self._clear()

    def cache_rows(self) -> None:
        """Keep the committed tenant queues for the next transaction."""
        self.tenant_queues.cache_rows()

    def drop_caches(self) -> None:
        """Drop all caches: they may hold rows that were not committed."""
        self.policies.drop_cache()
        self.tenant_queues.drop_cache()
        self.recent_claims.clear()
        self._clear()

    def remember(self, claim: RecentClaim) -> None:
        """Cache a claim until it is settled."""
        if len(self.recent_claims) >= MAX_RECENT_CLAIMS:
            self.recent_claims.clear()
        self.recent_claims[claim.job.id.int] = claim

    def savepoint(self) -> None:
        """Set a savepoint, for `release` or `rollback`."""
        self.flush()
        self.db.execute("SAVEPOINT verb")

    def release(self) -> None:
        """Release the savepoint; what was done since then stands."""
        self.flush()
        self.db.execute("RELEASE verb")

    def rollback(self) -> None:
        """Roll back to the savepoint; what was done before it stands."""
        self.db.execute("ROLLBACK TO verb")
        self.db.execute("RELEASE verb")
        self.drop_caches()

    def _clear(self) -> None:
        self.counters.clear()
        self.breakers.clear()
        self.tenant_queues.clear()
        self.budgets.clear()
        self.tally.clear()
        self.deaths.clear()
        self._writes.clear()
        self._next_seq = 0

    # ── writing ───────────────────────────────────────────────────────────────

    def write(self, statement: str, *values: Any) -> None:
        """Collect one row for a statement; `flush` sends it."""
        self._writes[statement].append(values)

    def write_all(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Collect many rows for a statement; `flush` sends them."""
        self._writes[statement] += rows

    def append(self, journal: JournalName, entries: Iterable[NewEntry]) -> None:
        """Collect entries for a journal, in their order; `flush` sends them."""
        self._writes[_SQL.append] += [
            (journal, self.now, one.kind, one.tenant, one.subject, one.count, one.body) for one in entries
        ]

    def flush(self) -> None:
        """Send all collected rows, then the tenant queues: stale heads are read from those rows."""
        if self.deaths:
            self.append("events", deaths(self.deaths))
            self.deaths.clear()
        if self.budgets.told:
            self.append("events", self.budgets.told)
            self.budgets.told.clear()
        for statement, rows in self._writes.items():
            write_many(self.db, statement, rows)
        self._writes.clear()
        if self.tally:
            self.db.executemany(_SQL.tally, [(*whose, n) for whose, n in self.tally.items()])
            self.tally.clear()
        self.tenant_queues.flush(self.now)
        self.budgets.flush()
        self.counters.flush()
        self.breakers.flush()

    def take_seqs(self, count: int) -> int:
        """Reserve numbers for bodies and return the first. Unique: the caller has the write lock."""
        first = self._next_seq or int(one_value(self.db, _SQL.next_seq))
        self._next_seq = first + count
        return first

    # ── waking ────────────────────────────────────────────────────────────────

    def hint(self, queue: str) -> None:
        """Wake workers that wait for a queue, once this is committed."""
        self._queues.add(queue)

    def hint_worker(self, worker: str) -> None:
        """Wake one worker, once this is committed."""
        self._workers.add(worker)

    def take_hints(self) -> tuple[set[str], set[str]]:
        """Return the queues and workers to wake, and forget them."""
        hints = (self._queues, self._workers)
        self._queues, self._workers = set(), set()
        return hints
