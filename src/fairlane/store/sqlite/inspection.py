"""Inspect the file: its settings, leads, tasks, and whether its pages are intact. Changes nothing."""

from __future__ import annotations

import time
from typing import Final

import apsw

from fairlane.model.instants import SECOND, Micros
from fairlane.store.contract.inspection import (
    PARTS_WITHIN,
    Inspection,
    InspectRequest,
    LeadRecord,
    largest_parts,
    wanted_parts,
)
from fairlane.store.sqlite.parts import read_parts
from fairlane.store.sqlite.query import all_rows, one_value
from fairlane.store.sqlite.size import read_size
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.transaction import Transaction

_SQL: Final = load("inspection")
_SYNCHRONOUS: Final = {0: "off", 1: "normal", 2: "full", 3: "extra"}
_MAX_DAMAGE_LINES: Final = 10
_STEPS: Final = 10_000
"""Steps of SQLite's virtual machine between two looks at the clock: well under a millisecond."""


def inspect(tx: Transaction, request: InspectRequest) -> Inspection:
    """Return the state of the file itself."""
    tenant = request.scope.tenant
    damage, is_checked = _damage(tx.db, request.at_most)
    wanted = wanted_parts(request)
    parts, are_counted = read_parts(tx.db, PARTS_WITHIN) if wanted else ([], True)
    return Inspection(
        settings=_settings(tx.db),
        leads=tuple(LeadRecord(*row) for row in tx.db.execute(_SQL.leads)),
        tasks=tuple(task for (task,) in tx.db.execute(_SQL.tasks, (tenant,))),
        first_lease_until=one_value(tx.db, _SQL.first_lease, (tenant,)),
        damage=damage,
        is_checked=is_checked,
        size=read_size(tx),
        parts=largest_parts(parts, wanted),
        are_all_parts=not wanted or (are_counted and len(parts) <= wanted),
    )


def _settings(db: apsw.Connection) -> dict[str, str]:
    size = int(db.pragma("page_count") or 0) * int(db.pragma("page_size") or 0)
    return {
        "schema": str(db.pragma("user_version")),
        "journal_mode": str(db.pragma("journal_mode")),
        "synchronous": _SYNCHRONOUS.get(int(db.pragma("synchronous") or 0), "unknown"),
        "sqlite": apsw.sqlite_lib_version(),
        "bytes": str(size),
    }


def _damage(db: apsw.Connection, at_most: Micros) -> tuple[tuple[str, ...], bool]:
    """Let SQLite check its pages; return what it found, and whether it finished in the given time."""
    if at_most <= 0:
        return (), False
    until = time.monotonic() + at_most / SECOND
    db.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    try:
        rows = all_rows(db, f"PRAGMA quick_check({_MAX_DAMAGE_LINES})")
    except apsw.InterruptError:
        return (), False
    except apsw.CorruptError as error:
        return (str(error),), True
    finally:
        db.set_progress_handler(None)
    return tuple(text for (text,) in rows if text != "ok"), True
