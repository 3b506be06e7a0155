"""Small values by name: a queue's virtual time, a gate's used slots, the state of rates, estimates of tasks.

Read when first needed, changed in memory, written back in bulk. Decides nothing.
"""

from __future__ import annotations

import apsw

from fairlane.model.instants import Instant, Micros
from fairlane.model.policy.limits import Rate
from fairlane.model.scheduling.fairness import FIRST_ESTIMATE, learn
from fairlane.store.sqlite.query import one_row
from fairlane.store.sqlite.statements import load

_SQL = load("counters")


class CounterRow:
    """One row: a value, whose meaning depends on the table, and the state of a rate."""

    __slots__ = ("is_changed", "next_allowed_at", "rate_id", "value")

    def __init__(self, value: int, next_allowed_at: Instant = 0, rate_id: str = "") -> None:
        """Start unchanged."""
        self.value = value
        self.next_allowed_at = next_allowed_at
        self.rate_id = rate_id
        self.is_changed = False


class CounterTable:
    """The rows of one table that a transaction has read."""

    def __init__(self, db: apsw.Connection, table: str) -> None:
        """Start empty."""
        self._db = db
        self._read: str = getattr(_SQL, f"read_{table}")
        self._write: str = getattr(_SQL, f"write_{table}")
        self._known: dict[str, CounterRow] = {}

    def __getitem__(self, name: str) -> CounterRow:
        """Return the row of a name; a new one if there is none."""
        found = self._known.get(name)
        if found is None:
            row = one_row(self._db, self._read, (name,)) or (0,)
            found = self._known[name] = CounterRow(*row)
        return found

    def set(self, name: str, value: int) -> None:
        """Change the value of a name."""
        row = self[name]
        row.value, row.is_changed = value, True

    def start(self, name: str, rate: Rate, now: Instant) -> None:
        """Count a start against a rate."""
        row = self[name]
        row.next_allowed_at = rate.start(rate.next_allowed_from(row.rate_id, row.next_allowed_at), now)
        row.rate_id, row.is_changed = rate.rate_id, True

    def flush(self) -> None:
        """Write changed rows."""
        changed = [(name, row) for name, row in self._known.items() if row.is_changed]
        if changed:
            rows = [(name, row.value, row.next_allowed_at, row.rate_id) for name, row in changed]
            self._db.executemany(self._write, rows)
            for _, row in changed:
                row.is_changed = False

    def clear(self) -> None:
        """Empty the cache."""
        self._known.clear()


class Estimates:
    """The expected running time of each task in each queue."""

    def __init__(self, db: apsw.Connection) -> None:
        """Start empty."""
        self._db = db
        self._known: dict[tuple[str, str], Micros] = {}
        self._changed: set[tuple[str, str]] = set()

    def __getitem__(self, name: tuple[str, str]) -> Micros:
        """Return the estimate for (queue, task); a second if nothing is known."""
        found = self._known.get(name)
        if found is None:
            row = one_row(self._db, _SQL.read_estimate, name)
            found = self._known[name] = FIRST_ESTIMATE if row is None else row[0]
        return found

    def learn(self, name: tuple[str, str], took: Micros) -> None:
        """Move an estimate towards one more measured run."""
        self._known[name] = learn(self[name], took)
        self._changed.add(name)

    def flush(self) -> None:
        """Write changed rows."""
        if self._changed:
            rows = [(*name, self._known[name]) for name in self._changed]
            self._db.executemany(_SQL.write_estimate, rows)
            self._changed.clear()

    def clear(self) -> None:
        """Empty the cache."""
        self._known.clear()
        self._changed.clear()


class Counters:
    """All counter tables together."""

    def __init__(self, db: apsw.Connection) -> None:
        """Start empty."""
        self.queues = CounterTable(db, "queue")  # the floor of the queue's virtual time
        self.tasks = CounterTable(db, "task")  # no value
        self.gates = CounterTable(db, "gate")  # used slots
        self.estimates = Estimates(db)
        self._all = (self.queues, self.tasks, self.gates, self.estimates)

    def flush(self) -> None:
        """Write changed rows."""
        for table in self._all:
            table.flush()

    def clear(self) -> None:
        """Empty the cache."""
        for table in self._all:
            table.clear()
