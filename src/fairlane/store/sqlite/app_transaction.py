"""Run a verb inside the application's own transaction, on its apsw connection, in its thread.

Never commits, and rolls back nothing but the verb itself. Each verb gets a new `Transaction` with empty
caches, because the application may roll back to a savepoint in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import apsw

from fairlane.model.errors import StoreBusy, StoreError, Unsupported
from fairlane.model.instants import Instant
from fairlane.store.sqlite.connection import busy_wait, to_store_error
from fairlane.store.sqlite.file_guard import is_store_file
from fairlane.store.sqlite.location import Location
from fairlane.store.sqlite.migrating import verify
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.transaction import Transaction

R = TypeVar("R")

_SQL = load("transaction")


class AppTransaction:
    """Runs verbs on connections that belong to the application and are open on the store's file."""

    def __init__(self, location: Location, clock: Callable[[], Instant]) -> None:
        """Open nothing: the connection is the application's."""
        self._path = location.path
        self._clock = clock

    def run(self, connection: object, verb: Callable[[Transaction], R]) -> R:
        """Run a verb in a savepoint of the open transaction: it happens completely or not at all."""
        db = self._known(connection)
        if not db.in_transaction:
            message = (
                "the connection has no open transaction, so nothing could be committed with the job; begin "
                "one first (`with connection:` or BEGIN IMMEDIATE), or enqueue without connection="
            )
            raise StoreError(message)
        try:
            with _as_we_need_it(db):
                _become_writer(db)
                verify(db)
                return _inside(Transaction(db), self._clock(), verb)
        except apsw.Error as error:
            raise _translated(error, db.filename) from error

    def _known(self, connection: object) -> apsw.Connection:
        if not isinstance(connection, apsw.Connection):
            kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
            message = (
                f"connection= takes an apsw.Connection to {self._path} here, not a {kind}; "
                "for any other library use the outbox in your own database"
            )
            raise Unsupported(message)
        if not is_store_file(connection, self._path):
            file = connection.filename or "a database in memory"
            message = (
                f"the connection is open on {file}, but the jobs are in {self._path}; "
                "open an apsw.Connection to that file, or use the outbox in your own"
            )
            raise Unsupported(message)
        return connection


@contextmanager
def _as_we_need_it(db: apsw.Connection) -> Iterator[None]:
    """Replace the application's settings for a while: the store needs rows as plain tuples."""
    before = (db.row_trace, db.exec_trace, db.cursor_factory)
    qpsg = db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1)
    db.row_trace, db.exec_trace, db.cursor_factory = None, None, apsw.Cursor
    # As on the store's own connections. A statement keeps the setting with which it was prepared, also
    # cached.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    try:
        yield
    finally:
        db.row_trace, db.exec_trace, db.cursor_factory = before
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, qpsg)


def _become_writer(db: apsw.Connection) -> None:
    """Take the write lock, waiting as the store does, whatever the connection's own timeout is."""
    wait, tries = busy_wait(), 0
    while True:
        try:
            db.execute(_SQL.take_write_lock)
        except apsw.BusyError as error:
            if _is_outdated(error) or not wait(tries):
                raise
            tries += 1
        except apsw.SQLError:
            verify(db)  # no such table: the file is not migrated, or not ours
            raise
        else:
            return


def _inside(tx: Transaction, now: Instant, verb: Callable[[Transaction], R]) -> R:
    tx.db.execute("SAVEPOINT verb")
    try:
        tx.begin(now)
        answer = verb(tx)
        tx.flush()
    except BaseException:
        if tx.db.in_transaction:  # a full disk has rolled back the whole transaction
            tx.rollback()
        raise
    tx.db.execute("RELEASE verb")
    return answer


def _is_outdated(error: apsw.Error) -> bool:
    """Whether the transaction reads an old snapshot, from which SQLite allows no write."""
    return getattr(error, "extendedresult", None) == apsw.SQLITE_BUSY_SNAPSHOT


def _translated(error: apsw.Error, file: str) -> StoreError:
    if _is_outdated(error):
        message = (
            f"{file}: the transaction began with a read, and somebody has written since; roll it back, "
            "begin it with BEGIN IMMEDIATE and do all of it again"
        )
        return StoreBusy(message, retry_safe=False)
    return to_store_error(error, file)
