"""Open the file: the right library, the right settings, and a clear word where it cannot be used."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

import apsw

from fairlane.model.errors import StoreBusy, StoreError, StoreGone, StoreUnavailable
from fairlane.store.sqlite.asking import one_value
from fairlane.store.sqlite.location import Location, hindrance

APPLICATION_ID: Final = 0x46414952
"""Marks the file as Fairlane's own; SQLite keeps it in the file's header."""

BUSY_SECONDS: Final = 5.0
STEP_SECONDS: Final = 0.0005

Identity = tuple[int, int]
"""A file's device and inode: the same for every name that leads to it."""

_held: dict[Identity, tuple[str, int]] = {}
_inherited: set[Identity] = set()
_guests: WeakKeyDictionary[apsw.Connection, Identity] = WeakKeyDictionary()
_guard = threading.Lock()
_is_watching = False


class Opened:
    """A connection, and the mark that keeps other libraries off its file while it is open."""

    def __init__(self, db: apsw.Connection, path: Path, identity: Identity) -> None:
        """Know which file it was at first."""
        self.db = db
        self.identity = identity
        self._path = path

    def check(self) -> None:
        """Refuse to go on if the path leads elsewhere by now: what is written then, nobody would find."""
        _refuse_another(self._path, self.identity)

    def close(self) -> None:
        """Close the connection and let other libraries have the file."""
        _close(self.db)
        _release(self.identity)


def _refuse_another(path: Path, identity: Identity) -> None:
    try:
        found = _identity(path)
    except (FileNotFoundError, NotADirectoryError):
        found = None
    except OSError as error:  # a disk or a right that may come back
        raise StoreUnavailable(f"{path} cannot be looked at: {error.strerror}") from error
    if found != identity:
        message = (
            f"{path} was deleted or replaced while it was open; nothing is written to it any more. "
            "Stop all processes that have it open, put the right file in its place, then start again."
        )
        raise StoreGone(message)


def connect(location: Location, known: Identity | None = None) -> Opened:
    """Open one connection with the settings that every connection needs; a missing file is made.

    With `known` it must be that file, and none is made.
    """
    path = location.path
    identity = _take(path, known, location.group)
    db: apsw.Connection | None = None
    try:
        db = open_file(path)
        db.set_busy_handler(patience())
        refuse_foreign(db)
        # Without this, binding a value makes SQLite plan a join anew: 35 µs instead of 4 for a job by its id.
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        if db.pragma("page_count") == 0:  # in a file that has anything, it writes or has no effect
            db.pragma("auto_vacuum", "incremental")
        _switch_to_log(db)
        db.pragma("synchronous", location.synchronous)
        # A connection's own cache, in kilobytes. The machine keeps the file's pages, too: more of them here
        # only makes a worker grow with the jobs it has seen.
        db.pragma("cache_size", -4_096)
        db.pragma("temp_store", "memory")
        db.pragma("journal_size_limit", 16 * 2**20)
        if location.group is not None:
            _share_log(db, path, location.group)
    except BaseException as error:
        if db is not None:
            _close(db)
        _release(identity)
        if isinstance(error, apsw.Error):
            if known is not None:  # deleted since it was looked at: it will not come back by waiting
                _refuse_another(path, known)
            raise translated(error, str(path)) from error
        raise
    return Opened(db, path, identity)


def _switch_to_log(db: apsw.Connection) -> None:
    """Keep a write-ahead log from now on.

    Of those who switch a new file at the same time, SQLite refuses all but one at once and calls no busy
    handler: each reads the file already, and might wait for one who waits for its end.
    """
    wait = patience()
    for tries in count():
        try:
            db.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if not wait(tries):
                raise
        else:
            return


def _share_log(db: apsw.Connection, path: Path, group: int) -> None:
    """Give the log to the group that has the file: SQLite takes over the file's mode, but not its group."""
    one_value(db, "SELECT count(*) FROM sqlite_schema")  # the first read makes it
    for end in ("-wal", "-shm"):
        with suppress(OSError):  # not there, or made by another user of the group, who shares it himself
            os.chown(f"{path.resolve()}{end}", -1, group)


def _close(db: apsw.Connection) -> None:
    with suppress(apsw.Error):  # it is closed all the same; whoever opens the file next finishes the WAL
        db.close()


def open_file(path: Path) -> apsw.Connection:
    """Open the file and set nothing. Tests put a disk that fails in its place."""
    return apsw.Connection(str(path))


def refuse_foreign(db: apsw.Connection) -> None:
    """Refuse another application's file while nothing in it is changed: the journal mode would be, for good.

    Tables first: whoever makes them sets the mark in the same transaction, so that it must be there then.
    """
    if one_value(db, "SELECT count(*) FROM sqlite_schema") and db.pragma("application_id") != APPLICATION_ID:
        message = f"{db.filename} is another application's SQLite file; give Fairlane a file of its own"
        raise StoreError(message)


def translated(error: apsw.Error, what: str = "") -> StoreError:
    """Say in our words what SQLite said, and whether a repeat is safe."""
    where = f"{what}: " if what else ""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(f"{where}another process kept the file locked for {BUSY_SECONDS:.0f} s")
        case apsw.FullError():
            return StoreUnavailable(f"{where}the disk is full; free some space and try again")
        case apsw.ReadOnlyError():
            return StoreError(f"{where}cannot be written to; {hindrance(what) or 'may this user change it?'}")
        case apsw.CantOpenError():
            why = hindrance(what) or "does its folder exist?"
            return StoreUnavailable(f"{where}cannot be opened; {why}", retry_safe=False)
        case apsw.NotADBError() | apsw.CorruptError():
            return StoreError(f"{where}is damaged or no SQLite file ({error}); restore it from a backup")
        case apsw.IOError():
            return StoreUnavailable(f"{where}could not be read or written ({error})")
        case _:
            return StoreError(f"{where}{error}")


def patience() -> Callable[[int], bool]:
    """Wait for somebody else's write, in short steps: SQLite's own steps grow to 100 ms.

    A job is written in 1 ms, a hundred in ten, and each try costs some: steps grow to 2 ms. Called with the
    number of tries before; False when `BUSY_SECONDS` are over.
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
def hurried(db: apsw.Connection, seconds: float) -> Iterator[None]:
    """Wait only so long for others, as long as this lasts."""
    db.set_busy_timeout(round(seconds * 1000))
    try:
        yield
    finally:
        db.set_busy_handler(patience())


# ── one library per process and file ──────────────────────────────────────────
#
# Two SQLite libraries in one process on one file destroy it: POSIX locks belong to the process, so that
# one library's close drops the other's locks. Another process may open the file with what it likes. Not seen
# is an `ATTACH` of the file by the standard library, of which Python gives no sign.


def _take(path: Path, known: Identity | None, group: int | None) -> Identity:
    """Mark the file as ours in this process; refuse if another library has it open already.

    A missing file is made here, empty: once SQLite had made it, it would look as if another library had it.
    """
    with _guard:
        if known is None:
            _make(path, group)
        else:
            _refuse_another(path, known)
        identity = _found(path)
        _refuse_inherited(path, identity)
        if identity not in _held and _is_open_elsewhere(identity):
            message = (
                f"{path} is already open in this process through another SQLite library; two of them on one "
                "file destroy it. Close the other connection, or use the outbox for your own file."
            )
            raise StoreError(message)
        _, holders = _held.get(identity, ("", 0))
        _held[identity] = (str(path), holders + 1)
        _watch()
    return identity


def welcome(db: apsw.Connection, path: Path) -> bool:
    """Say whether the application's own connection has this file; if so, other libraries are kept off it."""
    with _guard:
        known = _guests.get(db)
        here = _found(path)
        if known is None:
            if not db.filename or _identity(Path(db.filename)) != here:
                return False
            _refuse_inherited(path, here)
            _watch()
            known = _guests[db] = here
        return known == here


def _refuse_inherited(path: Path, identity: Identity) -> None:
    if identity in _inherited:
        message = (
            f"{path} was open when this process was forked from another, and SQLite's locks do not "
            "survive that. Open the store after the fork, or start processes by spawn."
        )
        raise StoreError(message)


def _release(identity: Identity) -> None:
    """Let other libraries have the file again, once its last connection in this process is closed."""
    with _guard:
        path, holders = _held[identity]
        if holders > 1:
            _held[identity] = (path, holders - 1)
        else:
            del _held[identity]


def _make(path: Path, group: int | None) -> None:
    try:
        _refuse_orphan(path)
        # Only if it is missing: closing a file that is open elsewhere in this process drops its locks.
        made = os.open(path.resolve(), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        if group is not None:
            os.fchown(made, -1, group)
        os.fchmod(
            made, 0o600 if group is None else 0o660
        )  # whatever the umask; SQLite gives the log the same
        os.close(made)
    except FileExistsError:
        return
    except FileNotFoundError as error:
        message = f"{path} cannot be made: there is no folder {path.parent}; create it first"
        raise StoreUnavailable(message, retry_safe=False) from error
    except OSError as error:
        message = f"{path} cannot be made: {error.strerror}; choose a folder that can be written to"
        raise StoreUnavailable(message, retry_safe=False) from error


def _refuse_orphan(path: Path) -> None:
    """Refuse to make a file beside the log of another: SQLite would delete that log, and the jobs in it.

    An empty log counts, too: whoever has it open would read the new file's pages out of it as its own.
    """
    log = Path(f"{path.resolve()}-wal")
    if log.exists() and not path.exists():  # in this order: whoever makes a file makes its log afterwards
        message = (
            f"{path} is missing, but its log {log.name} is there: it was moved or deleted while in use; stop "
            "all processes that use it and put it back, or delete the log, too, if nothing in it is wanted"
        )
        raise StoreError(message)


def _found(path: Path) -> Identity:
    try:
        identity = _identity(path)
        is_folder, is_file = path.is_dir(), path.is_file()
    except OSError as error:
        message = f"{path} cannot be found: {error.strerror}; was it deleted or moved?"
        raise StoreUnavailable(message, retry_safe=False) from error
    if is_folder:
        raise StoreError(f"{path} is a folder; name a file in it")
    if not is_file:
        raise StoreError(f"{path} is a device or a pipe; name a file")
    return identity


def _identity(path: Path) -> Identity:
    found = os.stat(path)  # noqa: PTH116 (twice for each commit, and three times as fast)
    return found.st_dev, found.st_ino


def _is_open_elsewhere(identity: Identity) -> bool:
    """Whether the file is open more often than our own library's connections account for."""
    found = 0
    for entry in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):  # closed meanwhile, or not ours to see
            status = entry.stat()
            found += (status.st_dev, status.st_ino) == identity
    return found > 0 and found > sum(_has_file(db, identity) for db in apsw.connections())


def _has_file(db: apsw.Connection, identity: Identity) -> bool:
    wait, tries = patience(), 0
    while True:
        try:
            return bool(db.filename) and _identity(Path(db.filename)) == identity
        except (apsw.ConnectionClosedError, OSError):
            return False
        except apsw.ThreadingViolationError:  # it runs a statement in another thread and cannot be asked
            if not wait(tries):
                return False
            tries += 1


def _is_open(db: apsw.Connection) -> bool:
    try:
        return bool(db.filename)
    except apsw.ConnectionClosedError:
        return False
    except apsw.ThreadingViolationError:
        return True


def _watch() -> None:
    """Hear of every `sqlite3.connect` and fork from now on, for the life of the process."""
    global _is_watching  # noqa: PLW0603 (there is one process)
    if not _is_watching:
        _is_watching = True
        sys.addaudithook(_refuse_second_library)
        os.register_at_fork(after_in_child=_remember_fork)


def _remember_fork() -> None:
    """In a forked child: the library believes that it has locks which only the parent has."""
    global _guard  # noqa: PLW0603 (a thread that is not here may have held it)
    _guard = threading.Lock()
    _inherited.update(_held, _guests.values())
    _held.clear()
    _guests.clear()


def _refuse_second_library(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "sqlite3.connect" or not (_held or _guests):
        return
    try:
        name = os.fsdecode(arguments[0])
        path = Path(unquote(urlsplit(name).path)) if name.startswith("file:") else Path(name)
        identity = _identity(path)
    except (OSError, TypeError, ValueError):
        return  # no such file, or no file at all
    with _guard:
        is_ours = identity in _held or any(id == identity and _is_open(db) for db, id in _guests.items())
    if is_ours:
        name, _ = _held.get(identity, (name, 0))
        message = (
            f"{name} belongs to Fairlane and is open in this process; opening it with the standard "
            "library's sqlite3 would destroy it. Use Fairlane's connection, or the outbox in your own file."
        )
        raise StoreError(message)
