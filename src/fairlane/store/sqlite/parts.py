"""List the tables of the file with their rows and bytes, for people who look into a store."""

from __future__ import annotations

import time
from typing import Final

import apsw

from fairlane.model.instants import SECOND, Micros
from fairlane.store.contract.inspection import StoredPart
from fairlane.store.sqlite.query import all_rows, one_value
from fairlane.store.sqlite.statements import load

_SQL: Final = load("inspection")
_STEPS: Final = 10_000


def read_parts(db: apsw.Connection, at_most: Micros) -> tuple[list[StoredPart], bool]:
    """Return every table, and whether all was counted: what takes longer than `at_most` together is None.

    SQLite keeps no such numbers: rows and pages are counted, so a large file does not show all of them.
    """
    until = time.monotonic() + at_most / SECOND
    db.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    try:
        sizes = _sizes(db)
        parts = [
            StoredPart(name=name, kind="table", entries=_rows(db, name), size=sizes.get(name))
            for (name,) in all_rows(db, _SQL.tables)
        ]
    finally:
        db.set_progress_handler(None)
    return parts, all(one.entries is not None and one.size is not None for one in parts)


def _sizes(db: apsw.Connection) -> dict[str, int]:
    """Return the bytes of each table with its indexes; none if that takes too long."""
    try:
        return dict(all_rows(db, _SQL.sizes))
    except (apsw.InterruptError, apsw.SQLError):  # too long, or a library without this table
        return {}


def _rows(db: apsw.Connection, table: str) -> int | None:
    try:
        # The name comes from the file's own schema, and a name in quotes ends only at its own quote.
        quoted = table.replace('"', '""')
        counted: int | None = one_value(db, f'SELECT count(*) FROM "{quoted}"')  # noqa: S608 (as said above)
    except apsw.InterruptError:
        return None
    return counted
