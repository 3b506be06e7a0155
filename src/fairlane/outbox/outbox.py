"""Add jobs to the outbox in the application's own transaction. Asks no store: the relay does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec

from fairlane.app.enqueue.call import Call
from fairlane.app.enqueue.job_builder import connection_of, take_batch
from fairlane.app.fairlane import Fairlane
from fairlane.model.checking import instance, one_of
from fairlane.model.errors import Problem, invalid_job
from fairlane.outbox.row import to_row
from fairlane.outbox.table import DDL, Bound, Dialect, ParamStyle, bound, check_style, insert

Execute = Callable[[str, Any], object]
"""Runs a statement with parameters on the application's connection."""


class Statement(msgspec.Struct, frozen=True):
    """The statement that adds one job, its parameters, and the id that the job will have."""

    id: UUID
    sql: str
    values: Bound


class Outbox:
    """The outbox of an application: jobs are rows of its own transaction, and a `Relay` moves them on.

    Use it if the application's database is not the store. A job is checked when it is added, with the errors
    of an enqueue. Whether the store admits it is known only when the relay delivers it. `paramstyle` is how
    the application's database library marks parameters (PEP 249); `named` fits sqlite3 and SQLAlchemy's
    `text()`.
    """

    def __init__(self, app: Fairlane, *, paramstyle: ParamStyle = "named") -> None:
        instance("app", app, Fairlane, "a Fairlane(...)")
        check_style(paramstyle)
        self._client = app.client
        self._style: ParamStyle = paramstyle

    @staticmethod
    def ddl(dialect: Dialect = "sqlite") -> str:
        """Return the CREATE TABLE statement, for the application's migrations."""
        one_of("dialect", dialect, *DDL)
        return DDL[dialect]

    def add(self, execute: Execute, call: Call[Any]) -> UUID:
        """Add one job, and return the id that it will have."""
        (one,) = self._statements([call], is_batch=False)
        execute(one.sql, one.values)
        return one.id

    def add_many(self, execute: Execute, calls: Iterable[Call[Any]]) -> list[UUID]:
        """Add at most 1,000 jobs, and return their ids; with one bad call nothing is executed."""
        statements = self.statements(calls)
        for one in statements:
            execute(one.sql, one.values)
        return [one.id for one in statements]

    def statements(self, calls: Iterable[Call[Any]]) -> list[Statement]:
        """Return the statements that add these jobs, for libraries whose `execute` is awaited."""
        return self._statements(calls, is_batch=True)

    def _statements(self, calls: Iterable[Call[Any]], *, is_batch: bool) -> list[Statement]:
        batch = take_batch(calls)
        _refuse_connections(batch)
        now = self._client.clock.wall()
        rows = [(job.id, to_row(job, now)) for job in self._client.new_jobs(batch, is_batch=is_batch)]
        return [Statement(id, insert(self._style, list(row)), bound(self._style, row)) for id, row in rows]


def _refuse_connections(calls: Sequence[Call[Any]]) -> None:
    hint = "leave it out: the row is added where you execute the statement"
    if connection_of(calls, None) is not None:
        raise invalid_job([Problem(0, "connection", "is given, but this is the outbox", hint, "conflict")])
