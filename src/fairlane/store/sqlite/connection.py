"""Open the file with the right settings, and turn errors of SQLite into those of the store.

Knows no table of jobs. What keeps the file in one piece is in `file_guard`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

import apsw

from fairlane.model.errors import SchemaTooOld, StoreBusy, StoreError, StoreUnavailable
from fairlane.store.sqlite.file_guard import (
    FileId,
    OpenFile,
    close,
    refuse_another_file,
    register,
    unregister,
)
from fairlane.store.sqlite.location import Location, access_problem
from fairlane.store.sqlite.query import one_value

APPLICATION_ID: Final = 0x464C414E
"""Marks the file as Fairlane's own, in SQLite's file header."""

DEVELOPMENT_ID: Final = 0x46414952
"""The mark of development versions before 0.1, whose schema cannot be migrated."""

BUSY_SECONDS: Final = 5.0
STEP_SECONDS: Final = 0.0005


def connect(location: Location, known: FileId | None = None) -> OpenFile:
    """Open a connection with the settings that every connection needs; create a missing file.

    With `known`, the path must lead to that file, and no file is created.
    """
    path = location.path
    identity = register(path, known, location.group, busy_wait())
    db: apsw.Connection | None = None
    try:
        db = open_file(path)
        db.set_busy_handler(busy_wait())
        refuse_other_application(db)
        # Without this, SQLite plans a join again when a value is bound: 35 µs instead of 4 for a job by id.
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        if db.pragma("page_count") == 0:  # later it has no effect, or rewrites the file
            db.pragma("auto_vacuum", "incremental")
        _switch_to_log(db)
        db.pragma("synchronous", location.synchronous)
        # Kilobytes. The operating system caches the file's pages as well: a larger cache here only makes the
        # worker's memory grow with the jobs it has seen.
        db.pragma("cache_size", -4_096)
        db.pragma("temp_store", "memory")
        db.pragma("journal_size_limit", 16 * 2**20)
        if location.group is not None:
            _share_log(db, path, location.group)
    except BaseException as error:
        if db is not None:
            close(db)
        unregister(identity)
        if isinstance(error, apsw.Error):
            if known is not None:  # a deleted file does not come back by waiting
                refuse_another_file(path, known)
            raise to_store_error(error, str(path)) from error
        raise
    return OpenFile(db, path, identity)


def _switch_to_log(db: apsw.Connection) -> None:
    """Switch the file to a write-ahead log.

    If several processes switch a new file at once, SQLite refuses all but one immediately and calls no busy
    handler, to avoid a deadlock of readers that wait for each other. Hence the retries.
    """
    wait = busy_wait()
    for tries in count():
        try:
            db.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if not wait(tries):
                raise
        else:
            return


def _share_log(db: apsw.Connection, path: Path, group: int) -> None:
    """Give the log to the group of the file: SQLite copies the file's mode, but not its group."""
    one_value(db, "SELECT count(*) FROM sqlite_schema")  # the first read creates the log
    for end in ("-wal", "-shm"):
        with suppress(OSError):  # missing, or created and shared by another user of the group
            os.chown(f"{path.resolve()}{end}", -1, group)


def open_file(path: Path) -> apsw.Connection:
    """Open the file without any settings. Tests replace this with a disk that fails."""
    return apsw.Connection(str(path))


def refuse_other_application(db: apsw.Connection) -> None:
    """Refuse another application's file before anything in it is changed; the journal mode is permanent.

    A file without tables is accepted: whoever creates them sets the application id in the same transaction.
    """
    if not one_value(db, "SELECT count(*) FROM sqlite_schema"):
        return
    found = db.pragma("application_id")
    if found == DEVELOPMENT_ID:
        message = (
            f"{db.filename} is of a development version before 0.1 and cannot be migrated; use a new file"
        )
        raise SchemaTooOld(message)
    if found != APPLICATION_ID:
        message = f"{db.filename} is another application's SQLite file; give Fairlane a file of its own"
        raise StoreError(message)


def to_store_error(error: apsw.Error, what: str = "") -> StoreError:
    """Return the store's error for an error of SQLite; it says what to do and whether a retry is safe."""
    where = f"{what}: " if what else ""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(f"{where}another process kept the file locked for {BUSY_SECONDS:.0f} s")
        case apsw.FullError():
            return StoreUnavailable(f"{where}the disk is full; free some space and try again")
        case apsw.ReadOnlyError():
            return StoreError(
                f"{where}cannot be written to; {access_problem(what) or 'may this user change it?'}"
            )
        case apsw.CantOpenError():
            why = access_problem(what) or "does its folder exist?"
            return StoreUnavailable(f"{where}cannot be opened; {why}", retry_safe=False)
        case apsw.NotADBError() | apsw.CorruptError():
            return StoreError(f"{where}is damaged or no SQLite file ({error}); restore it from a backup")
        case apsw.IOError():
            return StoreUnavailable(f"{where}could not be read or written ({error})")
        case _:
            return StoreError(f"{where}{error}")


def busy_wait() -> Callable[[int], bool]:
    """Return a busy handler that waits for another writer in short steps; SQLite's own grow to 100 ms.

    Writing a job takes 1 ms, a hundred jobs 10 ms, and each try has its cost: steps grow to 2 ms. The handler
    gets the number of earlier tries and returns False after `BUSY_SECONDS`.
    """
    began = 0.0

    def wait(tries: int) -> bool:
        nonlocal began
        now = time.monotonic()
        if tries == 0:
            began = now
        if now - began > BUSY_SECONDS:
            return False
        time.sleep(min(tries + 1, 4) * STEP_SECONDS)
        return True

    return wait


@contextmanager
def busy_timeout(db: apsw.Connection, seconds: float) -> Iterator[None]:
    """Wait at most `seconds` for other connections inside this block."""
    db.set_busy_timeout(round(seconds * 1000))
    try:
        yield
    finally:
        db.set_busy_handler(busy_wait())
