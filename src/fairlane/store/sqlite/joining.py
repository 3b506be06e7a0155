"""Run a verb inside the application's own transaction, on its own apsw connection, in its own thread.

Commits nothing and rolls nothing back but the verb itself. What a `Tx` knows is forgotten after each verb:
the application may go back to a savepoint in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import apsw

from fairlane.model.errors import StoreBusy, StoreError, Unsupported
from fairlane.model.instants import Instant
from fairlane.store.sqlite.connect import patience, translated, welcome
from fairlane.store.sqlite.location import Location
from fairlane.store.sqlite.migrating import verify
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tx import Tx

R = TypeVar("R")

_SQL = load("joining")


class Joining:
    """The way into transactions of connections that are not the store's own but have its file."""

    def __init__(self, location: Location, clock: Callable[[], Instant]) -> None:
        """Open nothing, ever."""
        self._path = location.path
        self._clock = clock

    def run(self, connection: object, verb: Callable[[Tx], R]) -> R:
        """Run a verb whole or not at all, as a savepoint of the transaction that is open there."""
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
                return _inside(Tx(db), self._clock(), verb)
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
        if not welcome(connection, self._path):
            file = connection.filename or "a database in memory"
            message = (
                f"the connection is open on {file}, but the jobs are in {self._path}; "
                "open an apsw.Connection to that file, or use the outbox in your own"
            )
            raise Unsupported(message)
        return connection


@contextmanager
def _as_we_need_it(db: apsw.Connection) -> Iterator[None]:
    """Lay aside what the application has set for its own statements: rows here are plain tuples."""
    before = (db.row_trace, db.exec_trace, db.cursor_factory)
    qpsg = db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1)
    db.row_trace, db.exec_trace, db.cursor_factory = None, None, apsw.Cursor
    # As on the store's own connections. Each statement remembers how it was prepared, the cache included.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    try:
        yield
    finally:
        db.row_trace, db.exec_trace, db.cursor_factory = before
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, qpsg)


def _become_writer(db: apsw.Connection) -> None:
    """Wait for another writer as the store does, whatever patience the application gave its connection."""
    wait, tries = patience(), 0
    while True:
        try:
            db.execute(_SQL.write_nothing)
        except apsw.BusyError as error:
            if _is_outdated(error) or not wait(tries):
                raise
            tries += 1
        except apsw.SQLError:
            verify(db)  # no such table: it is not migrated, or not ours
            raise
        else:
            return


def _inside(tx: Tx, now: Instant, verb: Callable[[Tx], R]) -> R:
    tx.db.execute("SAVEPOINT verb")
    try:
        tx.begin(now)
        answer = verb(tx)
        tx.flush()
    except BaseException:
        if tx.db.in_transaction:  # a full disk has ended it, and all that the application did in it
            tx.undo()
        raise
    tx.db.execute("RELEASE verb")
    return answer


def _is_outdated(error: apsw.Error) -> bool:
    """Whether the transaction sees an old state of the file, on which nobody may write."""
    return getattr(error, "extendedresult", None) == apsw.SQLITE_BUSY_SNAPSHOT


def _translated(error: apsw.Error, file: str) -> StoreError:
    if _is_outdated(error):
        message = (
            f"{file}: the transaction began with a read, and somebody has written since; roll it back, "
            "begin it with BEGIN IMMEDIATE and do all of it again"
        )
        return StoreBusy(message, retry_safe=False)
    return translated(error, file)
