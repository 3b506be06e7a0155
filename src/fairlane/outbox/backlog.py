"""Read and remove the rows of the outbox through any DB-API connection (PEP 249). Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from fairlane.outbox.table import ParamStyle, bound, delete, select, set_aside


class Cursor(Protocol):
    """The methods used of a DB-API cursor."""

    def execute(self, operation: str, parameters: Any, /) -> object:
        """Run a statement."""

    def executemany(self, operation: str, parameters: Any, /) -> object:
        """Run a statement for each of these parameters."""

    def fetchone(self) -> Any:
        """Return the next row, None at the end."""

    def close(self) -> object:
        """Close."""


class Connection(Protocol):
    """The methods used of a DB-API connection."""

    def cursor(self) -> Cursor:
        """Return a new cursor."""

    def commit(self) -> object:
        """Commit."""

    def rollback(self) -> object:
        """Roll back."""

    def close(self) -> object:
        """Close."""


class OutboxRow(NamedTuple):
    """One row of the outbox, not yet decoded."""

    id: str
    tenant: str
    format: int
    job: Any


class Backlog:
    """The rows of one outbox, over a connection of the relay's own."""

    def __init__(self, connection: Connection, paramstyle: ParamStyle) -> None:
        self._connection = connection
        self._style: ParamStyle = paramstyle

    def read(self, limit: int, size: int, without: Sequence[str]) -> list[OutboxRow]:
        """Return the first rows in order, without those of some tenants: at most `limit`, and `size` bytes.

        One statement, so no tenant in the answer has an earlier row that is missing from it. The first row is
        returned however large it is.
        """
        excluded = {f"tenant_{number}": tenant for number, tenant in enumerate(without)}
        rows: list[OutboxRow] = []
        cursor = self._connection.cursor()
        try:
            cursor.execute(select(self._style, list(excluded), limit), bound(self._style, excluded))
            while (found := cursor.fetchone()) is not None:
                row = OutboxRow(*found)
                size -= len(row.job)
                if rows and size < 0:
                    break
                rows.append(row)
        finally:
            cursor.close()
            self._connection.rollback()  # no transaction stays open while the store is asked
        return rows

    def finish(self, stored: Iterable[str], aside: Iterable[tuple[str, str]]) -> None:
        """Delete the stored rows, and record why others cannot be stored: pairs of id and problem."""
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
