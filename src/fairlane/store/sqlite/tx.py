"""One write transaction as verbs see it: the connection, the instant, what is known, what is to be written.

Writes are collected and sent in bulk by `flush`, which runs after every verb and before a verb reads what it
may have written itself. What is known outlives a transaction only where a version tells that it is still
true: policies have one of their own, turns that of the file.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, Final

import apsw
import msgspec

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import State
from fairlane.store.sqlite.asking import one_value
from fairlane.store.sqlite.bulk import write_many
from fairlane.store.sqlite.rulebook import Rulebook
from fairlane.store.sqlite.shelves import Shelves
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.turns import Turns

_SQL = load("tx")


HANDED_OUT_MOST: Final = 25_000
"""How many claims are remembered: more than a worker holds, and those it lost do not pile up."""


class HandedOut(msgspec.Struct, frozen=True, gc=False):
    """A claim as it was handed out: what settling it needs, if it succeeds."""

    seq: int
    strand: int
    job: JobRecord


class Tx:
    """What a verb works with.

    `handed_out` remembers claims by the number of their job's id. They may be lost by now, and another may
    have settled them: whoever uses one asks the file whether it still stands.
    """

    def __init__(self, db: apsw.Connection) -> None:
        """Belong to one connection for its life."""
        self.db = db
        self.now: Instant = 0
        self.rules = Rulebook(db)
        self.shelves = Shelves(db)
        self.turns = Turns(db, self.shelves)
        self.handed_out: dict[int, HandedOut] = {}
        self.tally: Counter[tuple[str, str, State]] = Counter()
        self._writes: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self._next_seq = 0
        self._version = -1
        self._queues: set[str] = set()
        self._workers: set[str] = set()

    def begin(self, now: Instant) -> None:
        """Start afresh; keep some of what was known if nobody else has written since."""
        self.now = now
        self.rules.check()
        version = one_value(self.db, "PRAGMA data_version")
        if version != self._version:
            self.turns.forget()
            self._version = version
        self._clear()

    def committed(self) -> None:
        """Keep what may still be true in the next transaction."""
        self.turns.keep()

    def forget(self) -> None:
        """Keep nothing: what is known was not committed."""
        self.rules.forget()
        self.turns.forget()
        self.handed_out.clear()
        self._clear()

    def remember(self, claim: HandedOut) -> None:
        """Remember a claim until it is settled."""
        if len(self.handed_out) >= HANDED_OUT_MOST:
            self.handed_out.clear()
        self.handed_out[claim.job.id.int] = claim

    def mark(self) -> None:
        """Remember this point: `undo` comes back to it, `keep` forgets it."""
        self.flush()
        self.db.execute("SAVEPOINT verb")

    def keep(self) -> None:
        """Let everything since the mark stand."""
        self.flush()
        self.db.execute("RELEASE verb")

    def undo(self) -> None:
        """Take everything since the mark back, and keep what was before it."""
        self.db.execute("ROLLBACK TO verb")
        self.db.execute("RELEASE verb")
        self.forget()

    def _clear(self) -> None:
        self.shelves.clear()
        self.turns.clear()
        self.tally.clear()
        self._writes.clear()
        self._next_seq = 0

    # ── writing ───────────────────────────────────────────────────────────────

    def write(self, statement: str, *values: Any) -> None:
        """Collect one row for a statement."""
        self._writes[statement].append(values)

    def write_all(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Collect many rows for a statement."""
        self._writes[statement] += rows

    def flush(self) -> None:
        """Send everything that was collected, then the turns, whose heads depend on it."""
        for statement, rows in self._writes.items():
            write_many(self.db, statement, rows)
        self._writes.clear()
        if self.tally:
            self.db.executemany(_SQL.tally, [(*whose, n) for whose, n in self.tally.items()])
            self.tally.clear()
        self.turns.flush(self.now)
        self.shelves.flush()

    def take_seqs(self, count: int) -> int:
        """Give the first of so many numbers for bodies; only the writer calls it, so they are unique."""
        first = self._next_seq or int(one_value(self.db, _SQL.next_seq))
        self._next_seq = first + count
        return first

    # ── waking ────────────────────────────────────────────────────────────────

    def hint(self, queue: str) -> None:
        """Remember that somebody should look at a queue once this is committed."""
        self._queues.add(queue)

    def hint_worker(self, worker: str) -> None:
        """Remember that a worker should be told something once this is committed."""
        self._workers.add(worker)

    def take_hints(self) -> tuple[set[str], set[str]]:
        """Give the hints of a transaction, once."""
        hints = (self._queues, self._workers)
        self._queues, self._workers = set(), set()
        return hints
