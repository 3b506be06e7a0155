"""Run statements on an application's own connection, of whichever library, in its open transaction.

Imports no driver: whoever has a connection has imported its library. On a synchronous connection nothing
here ever waits for an event loop, so a caller without one can run it to its end.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from fairlane.model.errors import Unsupported
from fairlane.store.postgres.rows import Row

_NUMBERED: Final = re.compile(r"\$(\d+)")

_SUPPORTED: Final = (
    "connection= takes a connection of psycopg 3 or asyncpg, a Session or Connection of SQLAlchemy over one "
    "of them, or django.db.connection over psycopg 3"
)


class AppConnection(Protocol):
    """One connection of an application."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What its library raises when the server refuses something or is gone."""
        ...

    @property
    def database(self) -> str | None:
        """The database that it is connected to, as far as it knows."""
        ...

    async def fetch(self, statement: str, *values: Any) -> Sequence[Row]:
        """Run one statement with values and return its rows."""
        ...

    async def execute(self, command: str) -> None:
        """Run one command that has neither values nor rows."""
        ...


def app_connection(connection: object) -> AppConnection:
    """Return a connection as statements need it; `Unsupported` if its kind is not known."""
    for kind in type(connection).__mro__:
        make = _KINDS.get(kind.__module__.partition(".")[0])
        if make is not None:
            return make(connection)
    raise _unsupported(connection)


def _unsupported(connection: object, what: str = "") -> Unsupported:
    kind = type(connection)
    named = what or f"a {kind.__module__}.{kind.__qualname__}"
    return Unsupported(
        f"{_SUPPORTED}, not {named}; for any other library use the outbox in your own database"
    )


class _Psycopg:
    """A `psycopg.Connection`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._psycopg = sys.modules["psycopg"]

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return (self._psycopg.Error,)

    @property
    def database(self) -> str | None:
        name: str = self._connection.info.dbname
        return name

    async def fetch(self, statement: str, *values: Any) -> Sequence[Row]:
        # A plain cursor, whatever cursor class the application has set for the connection.
        with self._psycopg.Cursor(self._connection, row_factory=self._psycopg.rows.tuple_row) as cursor:
            rows: Sequence[Row] = cursor.execute(*_named(statement, values)).fetchall()
            return rows

    async def execute(self, command: str) -> None:
        with self._psycopg.Cursor(self._connection) as cursor:
            cursor.execute(command)


class _AsyncPsycopg(_Psycopg):
    """A `psycopg.AsyncConnection`."""

    async def fetch(self, statement: str, *values: Any) -> Sequence[Row]:
        rows = self._psycopg.rows
        async with self._psycopg.AsyncCursor(self._connection, row_factory=rows.tuple_row) as cursor:
            await cursor.execute(*_named(statement, values))
            found: Sequence[Row] = await cursor.fetchall()
            return found

    async def execute(self, command: str) -> None:
        async with self._psycopg.AsyncCursor(self._connection) as cursor:
            await cursor.execute(command)


class _Asyncpg:
    """An `asyncpg.Connection`, or one lent by a pool."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        asyncpg = sys.modules["asyncpg"]
        self.errors = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)

    @property
    def database(self) -> str | None:
        return getattr(getattr(self._connection, "_params", None), "database", None)

    async def fetch(self, statement: str, *values: Any) -> Sequence[Row]:
        rows: Sequence[Row] = await self._connection.fetch(statement, *values)
        return rows

    async def execute(self, command: str) -> None:
        await self._connection.execute(command)


class _SqlAlchemy:
    """A `Connection` or `Session` of SQLAlchemy; a session is asked for its connection when it is needed."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self.errors = (sys.modules["sqlalchemy"].exc.SQLAlchemyError,)

    @property
    def _bound(self) -> Any:
        bind = self._owner.get_bind() if hasattr(self._owner, "get_bind") else self._owner
        if bind.dialect.name != "postgresql" or bind.dialect.driver not in _STYLES:
            raise _unsupported(self._owner, f"one over {bind.dialect.name}+{bind.dialect.driver}")
        return bind

    @property
    def database(self) -> str | None:
        name: str | None = self._bound.engine.url.database
        return name

    def _arguments(self, statement: str, values: Sequence[Any]) -> tuple[str, Any]:
        return _STYLES[self._bound.dialect.driver](statement, values)

    async def fetch(self, statement: str, *values: Any) -> Sequence[Row]:
        result = self._connection().exec_driver_sql(*self._arguments(statement, values))
        return [tuple(row) for row in result.fetchall()]

    async def execute(self, command: str) -> None:
        self._connection().exec_driver_sql(command)

    def _connection(self) -> Any:
        return self._owner.connection() if hasattr(self._owner, "get_bind") else self._owner


class _AsyncSqlAlchemy(_SqlAlchemy):
    """An `AsyncConnection` or `AsyncSession` of SQLAlchemy."""

    async def fetch(self, statement: str, *values: Any) -> Sequence[Row]:
        result = await (await self._joined()).exec_driver_sql(*self._arguments(statement, values))
        return [tuple(row) for row in result.fetchall()]

    async def execute(self, command: str) -> None:
        await (await self._joined()).exec_driver_sql(command)

    async def _joined(self) -> Any:
        return await self._owner.connection() if hasattr(self._owner, "get_bind") else self._owner


def _psycopg(connection: Any) -> AppConnection:
    names = {kind.__name__ for kind in type(connection).__mro__}
    if "AsyncConnection" in names:
        return _AsyncPsycopg(connection)
    if "Connection" in names:
        return _Psycopg(connection)
    raise _unsupported(connection)


def _asyncpg(connection: Any) -> AppConnection:
    if not hasattr(connection, "is_in_transaction"):
        raise _unsupported(connection)
    return _Asyncpg(connection)


def _sqlalchemy(connection: Any) -> AppConnection:
    names = {kind.__name__ for kind in type(connection).__mro__}
    if names & {"AsyncConnection", "AsyncSession", "async_scoped_session"}:
        return _AsyncSqlAlchemy(connection)
    if names & {"Connection", "Session", "scoped_session"}:
        return _SqlAlchemy(connection)
    raise _unsupported(connection)


def _django(connection: Any) -> AppConnection:
    """Use the connection beneath Django's: outside `atomic` it is in autocommit and will be refused."""
    if getattr(connection, "vendor", None) != "postgresql":
        raise _unsupported(connection, f"Django's over {getattr(connection, 'vendor', 'something else')}")
    connection.validate_thread_sharing()
    connection.ensure_connection()
    beneath = connection.connection
    if type(beneath).__module__.partition(".")[0] != "psycopg":
        raise _unsupported(beneath)
    return _psycopg(beneath)


_KINDS: Final[dict[str, Callable[[Any], AppConnection]]] = {
    "psycopg": _psycopg,
    "asyncpg": _asyncpg,
    "sqlalchemy": _sqlalchemy,
    "django": _django,
}

Arguments: TypeAlias = tuple[str, Any]


def _named(statement: str, values: Sequence[Any]) -> Arguments:
    """Return a statement with named parameters, as psycopg wants them.

    >>> _named("SELECT $1::int % $2", (7, 2))
    ('SELECT %(p1)s::int %% %(p2)s', {'p1': 7, 'p2': 2})
    """
    text = _NUMBERED.sub(r"%(p\1)s", statement.replace("%", "%%"))
    return text, {f"p{number}": value for number, value in enumerate(values, 1)}


def _numbered(statement: str, values: Sequence[Any]) -> Arguments:
    return statement, tuple(values)


_STYLES: Final[dict[str, Callable[[str, Sequence[Any]], Arguments]]] = {
    "psycopg": _named,
    "psycopg_async": _named,
    "asyncpg": _numbered,
}
"""Drivers that SQLAlchemy may use here, and how they take parameters."""
