"""Add jobs to the outbox in the application's own transaction. Asks no store; the relay does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec

from fairlane.app.call import Call
from fairlane.app.fairlane import Fairlane
from fairlane.app.form import connection_of, taken_from
from fairlane.model.checking import one_of
from fairlane.model.errors import Problem, invalid_job
from fairlane.outbox.options import check_app, check_style
from fairlane.outbox.row import to_row
from fairlane.outbox.table import DDL, Bound, Dialect, ParamStyle, bound, insert

Execute = Callable[[str, Any], object]
"""Runs a statement with its values on the application's own connection."""


class Statement(msgspec.Struct, frozen=True):
    """What adds one job: the statement, its values, and the id that the job will have."""

    id: UUID
    sql: str
    values: Bound


class Outbox:
    """The outbox of an application: jobs become rows of its own transaction, and a relay moves them on.

    The form of a job is checked when it is added, with the same errors as an enqueue; whether the store takes
    it is known when the relay brings it there. `paramstyle` is how the application's library marks parameters
    (PEP 249); `named` serves the standard library's sqlite3 and SQLAlchemy's `text()`.
    """

    def __init__(self, app: Fairlane, *, paramstyle: ParamStyle = "named") -> None:
        check_app(app)
        check_style(paramstyle)
        self._client = app.client
        self._style: ParamStyle = paramstyle

    @staticmethod
    def ddl(dialect: Dialect = "sqlite") -> str:
        """Give the statement that makes the table, for the application's migrations."""
        one_of("dialect", dialect, *DDL)
        return DDL[dialect]

    def add(self, execute: Execute, call: Call[Any]) -> UUID:
        """Add one job and give the id that it will have."""
        (one,) = self._statements([call], is_batch=False)
        execute(one.sql, one.values)
        return one.id

    def add_many(self, execute: Execute, calls: Iterable[Call[Any]]) -> list[UUID]:
        """Add at most 1,000 jobs and give their ids; with one bad call nothing is executed."""
        statements = self.statements(calls)
        for one in statements:
            execute(one.sql, one.values)
        return [one.id for one in statements]

    def statements(self, calls: Iterable[Call[Any]]) -> list[Statement]:
        """Give what adds these jobs, for libraries whose `execute` is awaited."""
        return self._statements(calls, is_batch=True)

    def _statements(self, calls: Iterable[Call[Any]], *, is_batch: bool) -> list[Statement]:
        taken = taken_from(calls)
        _refuse_connections(taken)
        now = self._client.clock.wall()
        rows = [(job.id, to_row(job, now)) for job in self._client.formed(taken, is_batch=is_batch)]
        return [Statement(id, insert(self._style, list(row)), bound(self._style, row)) for id, row in rows]


def _refuse_connections(calls: Sequence[Call[Any]]) -> None:
    hint = "leave it out: the row goes where it is executed"
    if connection_of(calls, None) is not None:
        raise invalid_job([Problem(0, "connection", "is given, but this is the outbox", hint, "conflict")])
