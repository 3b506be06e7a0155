"""The rows that wait in the outbox, through any DB-API connection (PEP 249). Decides nothing about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from fairlane.outbox.table import ParamStyle, bound, delete, select, set_aside


class Cursor(Protocol):
    """What is asked of a DB-API cursor."""

    def execute(self, operation: str, parameters: Any, /) -> object:
        """Run a statement."""

    def executemany(self, operation: str, parameters: Any, /) -> object:
        """Run a statement for each of these."""

    def fetchone(self) -> Any:
        """Give the next row, None at the end."""

    def close(self) -> object:
        """Let go of it."""


class Connection(Protocol):
    """What is asked of a DB-API connection."""

    def cursor(self) -> Cursor:
        """Make a cursor."""

    def commit(self) -> object:
        """Commit."""

    def rollback(self) -> object:
        """Roll back."""

    def close(self) -> object:
        """Close."""


class Waiting(NamedTuple):
    """One row, as it stands."""

    id: str
    tenant: str
    format: int
    job: Any


class Backlog:
    """The outbox of one database over one connection of our own."""

    def __init__(self, connection: Connection, paramstyle: ParamStyle) -> None:
        self._connection = connection
        self._style: ParamStyle = paramstyle

    def read(self, most: int, size: int, without: Sequence[str]) -> list[Waiting]:
        """Give the first rows in order, but none of these tenants': at most so many, and so many bytes.

        One statement: for each tenant in the answer, no earlier row of it was there and is missing. The first
        row is given however large it is.
        """
        excluded = {f"tenant_{number}": tenant for number, tenant in enumerate(without)}
        rows: list[Waiting] = []
        cursor = self._connection.cursor()
        try:
            cursor.execute(select(self._style, list(excluded), most), bound(self._style, excluded))
            while (found := cursor.fetchone()) is not None:
                row = Waiting(*found)
                size -= len(row.job)
                if rows and size < 0:
                    break
                rows.append(row)
        finally:
            cursor.close()
            self._connection.rollback()  # so that nothing is open while the store is asked
        return rows

    def finish(self, stored: Iterable[str], aside: Iterable[tuple[str, str]]) -> None:
        """Remove rows that the store has, and note why others cannot be stored: (id, problem)."""
        gone = [bound(self._style, {"id": id}) for id in stored]
        noted = [bound(self._style, {"problem": problem, "id": id}) for id, problem in aside]
        cursor = self._connection.cursor()
        try:
            for statement, values in ((delete(self._style), gone), (set_aside(self._style), noted)):
                if values:
                    cursor.executemany(statement, values)
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise
        finally:
            cursor.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
