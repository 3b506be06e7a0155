"""Write many rows in few statements. Knows no table.

A statement that is run for one row hands the interpreter's lock over and takes it back, and SQLite starts it
anew: with that a row costs half as much again, and another thread may have the lock for milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final

import apsw
import msgspec

ROWS: Final = 50
"""How many rows a statement takes: more of them save nothing, and few batches are smaller."""

_INSERT: Final = re.compile(r"(INSERT INTO [^?]*?VALUES )(\([^()]*\))")
_PARAMETER: Final = re.compile(r"\?(\d+)")

_to_json = msgspec.json.Encoder().encode


def write_many(db: apsw.Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Run a statement for each row, in their order; plain inserts take many rows at a time."""
    whole = len(rows) - len(rows) % ROWS
    wide = _widened(statement) if whole else None
    if wide is None:
        whole = 0
    else:
        many = (rows[at : at + ROWS] for at in range(0, whole, ROWS))
        db.executemany(wide, (tuple(chain.from_iterable(some)) for some in many))
    if whole < len(rows):
        db.executemany(statement, rows[whole:])


def as_array(values: Iterable[int | str]) -> str:
    """Give numbers or names as the one value that `json_each` reads again.

    >>> as_array([3, 5])
    '[3,5]'
    """
    return _to_json(list(values)).decode()


@lru_cache(maxsize=64)
def _widened(statement: str) -> str | None:
    """Make an insert of one row one of `ROWS` rows; None for any other statement."""
    found = _INSERT.fullmatch(statement)
    if found is None:
        return None
    head, row = found.groups()
    width = max(map(int, _PARAMETER.findall(row)))
    rows = (_PARAMETER.sub(lambda one, by=at * width: f"?{int(one[1]) + by}", row) for at in range(ROWS))
    return head + ", ".join(rows)
