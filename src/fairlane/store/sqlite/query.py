"""Run statements: read rows as tuples, in the order of the statement's columns, and write many rows at once.

Knows no table. Each run of a statement releases and retakes the interpreter's lock and restarts the statement
in SQLite. Row by row that adds half to the cost of a row, and another thread may hold the lock for
milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final

import apsw
import msgspec

Values = tuple[Any, ...] | dict[str, Any]

ROWS: Final = 50
"""Rows per statement. More save nothing, and few batches are smaller."""

_INSERT: Final = re.compile(r"(INSERT INTO [^?]*?VALUES )(\([^()]*\))")
_PARAMETER: Final = re.compile(r"\?(\d+)")

_to_json = msgspec.json.Encoder().encode


def all_rows(db: apsw.Connection, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
    """Return all rows of a query."""
    return db.execute(statement, values).fetchall()


def each_row(db: apsw.Connection, statement: str, many: Iterable[Values]) -> list[tuple[Any, ...]]:
    """Return the rows of one query run once per value; separate calls would cost twice as much."""
    return db.executemany(statement, many).fetchall()


def one_row(db: apsw.Connection, statement: str, values: Values = ()) -> tuple[Any, ...] | None:
    """Return the first row of a query, or None if there is none."""
    return db.execute(statement, values).fetchone()


def one_value(db: apsw.Connection, statement: str, values: Values = ()) -> Any:
    """Return the first column of the first row, or None if there is none."""
    found = one_row(db, statement, values)
    return None if found is None else found[0]


def write_many(db: apsw.Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Run a statement for each row, in order; plain inserts take `ROWS` rows at a time."""
    whole = len(rows) - len(rows) % ROWS
    wide = _widened(statement) if whole else None
    if wide is None:
        whole = 0
    else:
        many = (rows[at : at + ROWS] for at in range(0, whole, ROWS))
        db.executemany(wide, (tuple(chain.from_iterable(some)) for some in many))
    if whole < len(rows):
        db.executemany(statement, rows[whole:])


def json_array(values: Iterable[int | str]) -> str:
    """Return numbers or names as one JSON array, which SQL reads with `json_each`.

    >>> json_array([3, 5])
    '[3,5]'
    """
    return _to_json(list(values)).decode()


@lru_cache(maxsize=64)
def _widened(statement: str) -> str | None:
    """Turn a plain insert of one row into one of `ROWS` rows; None for any other statement."""
    found = _INSERT.fullmatch(statement)
    if found is None:
        return None
    head, row = found.groups()
    width = max(map(int, _PARAMETER.findall(row)))
    rows = (_PARAMETER.sub(lambda one, by=at * width: f"?{int(one[1]) + by}", row) for at in range(ROWS))
    return head + ", ".join(rows)
