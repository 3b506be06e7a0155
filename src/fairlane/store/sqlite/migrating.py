"""Bring a file to this version's schema. Forward only; safe to repeat, and from several processes at once."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

import apsw

from fairlane.model.errors import SchemaTooNew, SchemaTooOld
from fairlane.store.contract.upkeep import MigrateReply
from fairlane.store.sqlite.connection import APPLICATION_ID, refuse_other_application
from fairlane.store.sqlite.query import one_value


def _steps() -> tuple[tuple[str, str], ...]:
    folder = files("fairlane.store.sqlite") / "migrations"
    found = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple((name.removesuffix(".sql"), (folder / name).read_text("utf-8")) for name in found)


STEPS: Final = _steps()
NEWEST: Final = len(STEPS)


def migrate(db: apsw.Connection) -> MigrateReply:
    """Run the missing steps in one transaction: a crash leaves the old schema intact."""
    db.execute("BEGIN IMMEDIATE")  # a second process waits here, then finds nothing left to do
    try:
        before = _version(db)
        _refuse_unknown(db, before)
        missing = STEPS[before:]
        for number, (_, text) in enumerate(missing, before + 1):
            db.execute(text)
            db.pragma("user_version", number)
        if missing:
            db.pragma("application_id", APPLICATION_ID)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk has ended it
            db.execute("ROLLBACK")
        raise
    return planned(before)


def plan(db: apsw.Connection) -> MigrateReply:
    """Return which steps are missing."""
    before = _version(db)
    _refuse_unknown(db, before)
    return planned(before)


def planned(before: int) -> MigrateReply:
    """Return which steps lead from a version to this one."""
    return MigrateReply(before, NEWEST, tuple(name for name, _ in STEPS[before:]))


def verify(db: apsw.Connection) -> None:
    """Raise unless the file is Fairlane's and has this version's schema."""
    version = _version(db)
    _refuse_unknown(db, version)
    if version < NEWEST:
        message = f"{db.filename} has schema {version}, this version needs {NEWEST}: run `fairlane migrate`"
        raise SchemaTooOld(message)


def is_empty(db: apsw.Connection) -> bool:
    """Whether nothing was ever created in the file."""
    return int(one_value(db, "SELECT count(*) FROM sqlite_schema")) == 0


def _version(db: apsw.Connection) -> int:
    version = db.pragma("user_version")
    return int(version or 0)


def _refuse_unknown(db: apsw.Connection, version: int) -> None:
    refuse_other_application(db)
    if version > NEWEST:
        message = f"{db.filename} has schema {version}, newer than {NEWEST}: upgrade Fairlane"
        raise SchemaTooNew(message)
