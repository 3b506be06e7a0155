"""The states of circuit breakers that a transaction has read and changed. Decides nothing."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

import apsw

from fairlane.model.guards.breaker import CLOSED, BreakerState
from fairlane.store.breaker_changes import pack_state, unpack_state
from fairlane.store.contract.breakers import MAX_OPEN_BREAKERS, BreakerKey
from fairlane.store.sqlite.query import all_rows, json_array, one_value
from fairlane.store.sqlite.statements import load

_SQL = load("breakers")


class BreakerTable:
    """Read when first needed, changed in memory, written by `flush`."""

    def __init__(self, db: apsw.Connection) -> None:
        """Start empty."""
        self._db = db
        self._known: dict[BreakerKey, BreakerState] = {}
        self._changed: set[BreakerKey] = set()
        self._claimed: set[UUID] = set()
        self._not_closed: set[str] | None = None

    def __getitem__(self, key: BreakerKey) -> BreakerState:
        """Return the state of a breaker; a closed one if nothing is known about it."""
        found = self._known.get(key)
        if found is None:
            stored = one_value(self._db, _SQL.read, (key.name, key.tenant))
            found = self._known[key] = CLOSED if stored is None else unpack_state(stored)
        return found

    def __setitem__(self, key: BreakerKey, state: BreakerState) -> None:
        """Change the state of a breaker."""
        self._known[key] = state
        self._changed.add(key)
        self._not_closed = None

    def is_any_open(self, name: str) -> bool:
        """Whether a breaker is not closed, for all tenants or for one."""
        if self._not_closed is None:
            self.flush()
            self._not_closed = {name for (name,) in self._db.execute(_SQL.not_closed)}
        return name in self._not_closed

    def open(self) -> dict[BreakerKey, BreakerState]:
        """Return the breakers that are not closed, or one more than a claim names."""
        if self._not_closed == set():
            return {}
        self.flush()
        keys = [BreakerKey(*row) for row in all_rows(self._db, _SQL.open, (MAX_OPEN_BREAKERS + 1,))]
        return {key: self[key] for key in keys}

    def note_claimed(self, job: UUID) -> None:
        """Note a job that this transaction makes running: its row may not be written yet."""
        self._claimed.add(job)

    def running(self, jobs: Collection[UUID]) -> set[UUID]:
        """Return which of these jobs run."""
        if not jobs:
            return set()
        asked = (json_array(job.hex for job in jobs),)
        found = {UUID(hex=id) for (id,) in all_rows(self._db, _SQL.running, asked)}
        return found | (self._claimed & set(jobs))

    def flush(self) -> None:
        """Write changed rows."""
        if self._changed:
            rows = [
                (key.name, key.tenant, self._known[key].slots, pack_state(self._known[key]))
                for key in sorted(self._changed)
            ]
            self._db.executemany(_SQL.write, rows)
            self._changed.clear()

    def clear(self) -> None:
        """Empty the cache."""
        self._known.clear()
        self._changed.clear()
        self._claimed.clear()
        self._not_closed = None
