"""Ask the file something and get the answer whole. Rows are tuples in the order of the statement."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw

Values = tuple[Any, ...] | dict[str, Any]


def all_rows(db: apsw.Connection, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
    """Give all rows of an answer."""
    return db.execute(statement, values).fetchall()


def each_row(db: apsw.Connection, statement: str, many: Iterable[Values]) -> list[tuple[Any, ...]]:
    """Give the rows of one statement asked many times: each time by itself costs twice as much."""
    return db.executemany(statement, many).fetchall()


def one_row(db: apsw.Connection, statement: str, values: Values = ()) -> tuple[Any, ...] | None:
    """Give the first row of an answer, or None if there is none."""
    return db.execute(statement, values).fetchone()


def one_value(db: apsw.Connection, statement: str, values: Values = ()) -> Any:
    """Give the first column of the first row, or None if there is none."""
    found = one_row(db, statement, values)
    return None if found is None else found[0]
