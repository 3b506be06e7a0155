"""The few small facts kept by name: a queue's floor, a gate's use, arrivals of rates, estimates of tasks."""

from __future__ import annotations

import apsw

from fairlane.model.fairness import FIRST_ESTIMATE, learn
from fairlane.model.instants import Instant, Micros
from fairlane.model.limits import Rate
from fairlane.store.sqlite.asking import one_row
from fairlane.store.sqlite.statements import load

_SQL = load("shelves")


class Facts:
    """A measure and an arrival under one name; what the measure is, if any, its shelf says."""

    __slots__ = ("arrival", "is_changed", "measure", "pace")

    def __init__(self, measure: int, arrival: Instant = 0, pace: str = "") -> None:
        """Begin unchanged."""
        self.measure = measure
        self.arrival = arrival
        self.pace = pace
        self.is_changed = False


class Shelf:
    """The rows of one small table, read when first asked for, written back if changed."""

    def __init__(self, db: apsw.Connection, table: str) -> None:
        """Know nothing yet."""
        self._db = db
        self._read: str = getattr(_SQL, f"read_{table}")
        self._write: str = getattr(_SQL, f"write_{table}")
        self._known: dict[str, Facts] = {}

    def __getitem__(self, name: str) -> Facts:
        """Give the facts of a name, fresh ones if there are none."""
        found = self._known.get(name)
        if found is None:
            row = one_row(self._db, self._read, (name,)) or (0,)
            found = self._known[name] = Facts(*row)
        return found

    def set(self, name: str, measure: int) -> None:
        """Write a new measure."""
        facts = self[name]
        facts.measure, facts.is_changed = measure, True

    def start(self, name: str, rate: Rate, now: Instant) -> None:
        """Count a start against a rate."""
        facts = self[name]
        facts.arrival = rate.start(rate.carried(facts.pace, facts.arrival), now)
        facts.pace, facts.is_changed = rate.pace, True

    def flush(self) -> None:
        """Write what changed."""
        changed = [(name, facts) for name, facts in self._known.items() if facts.is_changed]
        if changed:
            rows = [(name, facts.measure, facts.arrival, facts.pace) for name, facts in changed]
            self._db.executemany(self._write, rows)
            for _, facts in changed:
                facts.is_changed = False

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()


class Estimates:
    """How long a task is expected to run in a queue."""

    def __init__(self, db: apsw.Connection) -> None:
        """Know nothing yet."""
        self._db = db
        self._known: dict[tuple[str, str], Micros] = {}
        self._changed: set[tuple[str, str]] = set()

    def __getitem__(self, name: tuple[str, str]) -> Micros:
        """Give what is expected of (queue, task); a second if nothing is known."""
        found = self._known.get(name)
        if found is None:
            row = one_row(self._db, _SQL.read_estimate, name)
            found = self._known[name] = FIRST_ESTIMATE if row is None else row[0]
        return found

    def learn(self, name: tuple[str, str], took: Micros) -> None:
        """Let one more run move what is expected."""
        self._known[name] = learn(self[name], took)
        self._changed.add(name)

    def flush(self) -> None:
        """Write what changed."""
        if self._changed:
            rows = [(*name, self._known[name]) for name in self._changed]
            self._db.executemany(_SQL.write_estimate, rows)
            self._changed.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()
        self._changed.clear()


class Shelves:
    """All small tables together."""

    def __init__(self, db: apsw.Connection) -> None:
        """Know nothing yet."""
        self.queues = Shelf(db, "queue")  # the floor of its virtual time
        self.tasks = Shelf(db, "task")  # no measure
        self.gates = Shelf(db, "gate")  # how many are inside
        self.estimates = Estimates(db)
        self._all = (self.queues, self.tasks, self.gates, self.estimates)

    def flush(self) -> None:
        """Write what changed."""
        for shelf in self._all:
            shelf.flush()

    def clear(self) -> None:
        """Forget everything."""
        for shelf in self._all:
            shelf.clear()
