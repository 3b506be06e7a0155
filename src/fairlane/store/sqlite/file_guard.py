"""Keep the file intact: one SQLite library per process, no use after a fork, no other file under its name.

Two SQLite libraries in one process on one file destroy it: POSIX locks belong to the process, so that one
library's close drops the other's locks. Other processes may use any library. One case is not detected: an
`ATTACH` of the file by the standard library, which raises no audit event.

Knows no table and no setting.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

import apsw

from fairlane.model.errors import StoreError, StoreGone, StoreUnavailable

FileId = tuple[int, int]
"""A file's device and inode: equal for all paths to the same file."""

_open_files: dict[FileId, tuple[str, int]] = {}
_inherited: set[FileId] = set()
_app_connections: WeakKeyDictionary[apsw.Connection, FileId] = WeakKeyDictionary()
_guard = threading.Lock()
_is_watching = False


class OpenFile:
    """A connection, and the registration that keeps other libraries off its file while it is open."""

    def __init__(self, db: apsw.Connection, path: Path, identity: FileId) -> None:
        """Remember which file was opened."""
        self.db = db
        self.identity = identity
        self._path = path

    def check(self) -> None:
        """Raise if the path leads to another file by now: nobody would find what is written."""
        refuse_another_file(self._path, self.identity)

    def close(self) -> None:
        """Close the connection; other libraries may open the file again."""
        close(self.db)
        unregister(self.identity)


def refuse_another_file(path: Path, identity: FileId) -> None:
    """Raise if a path no longer leads to the file that was opened under it."""
    try:
        found = identity_of(path)
    except (FileNotFoundError, NotADirectoryError):
        found = None
    except OSError as error:  # a disk or a permission that may come back
        raise StoreUnavailable(f"{path} cannot be looked at: {error.strerror}") from error
    if found != identity:
        message = (
            f"{path} was deleted or replaced while it was open; nothing is written to it any more. "
            "Stop all processes that have it open, put the right file in its place, then start again."
        )
        raise StoreGone(message)


def register(path: Path, known: FileId | None, group: int | None, wait: Callable[[int], bool]) -> FileId:
    """Register the file as ours in this process; refuse it if another library has it open.

    A missing file is created here, empty. If SQLite created it, it would look as if another library had it
    open.
    """
    with _guard:
        if known is None:
            _create(path, group)
        else:
            refuse_another_file(path, known)
        identity = _existing(path)
        _refuse_inherited(path, identity)
        if identity not in _open_files and _is_open_elsewhere(identity, wait):
            message = (
                f"{path} is already open in this process through another SQLite library; two of them on one "
                "file destroy it. Close the other connection, or use the outbox for your own file."
            )
            raise StoreError(message)
        _, holders = _open_files.get(identity, ("", 0))
        _open_files[identity] = (str(path), holders + 1)
        _watch()
    return identity


def is_store_file(db: apsw.Connection, path: Path) -> bool:
    """Return whether the application's connection is open on this file; if so, register it."""
    with _guard:
        known = _app_connections.get(db)
        here = _existing(path)
        if known is None:
            if not db.filename or identity_of(Path(db.filename)) != here:
                return False
            _refuse_inherited(path, here)
            _watch()
            known = _app_connections[db] = here
        return known == here


def _refuse_inherited(path: Path, identity: FileId) -> None:
    if identity in _inherited:
        message = (
            f"{path} was open when this process was forked from another, and SQLite's locks do not "
            "survive that. Open the store after the fork, or start processes by spawn."
        )
        raise StoreError(message)


def unregister(identity: FileId) -> None:
    """Allow other libraries again, once the last connection of this process is closed."""
    with _guard:
        path, holders = _open_files[identity]
        if holders > 1:
            _open_files[identity] = (path, holders - 1)
        else:
            del _open_files[identity]


def _create(path: Path, group: int | None) -> None:
    try:
        _refuse_orphan(path)
        # Only if it is missing: closing a file that this process has open elsewhere drops its locks.
        made = os.open(path.resolve(), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        if group is not None:
            os.fchown(made, -1, group)
        # Whatever the umask is; SQLite gives the log the same mode.
        os.fchmod(made, 0o600 if group is None else 0o660)
        os.close(made)
    except FileExistsError:
        return
    except FileNotFoundError as error:
        message = f"{path} cannot be created: there is no folder {path.parent}; create it first"
        raise StoreUnavailable(message, retry_safe=False) from error
    except OSError as error:
        message = f"{path} cannot be created: {error.strerror}; choose a folder that can be written to"
        raise StoreUnavailable(message, retry_safe=False) from error


def _refuse_orphan(path: Path) -> None:
    """Refuse to create a file beside the log of a missing one: SQLite would delete that log, and its jobs.

    An empty log counts as well: a process that still has it open would mix the new file's pages with its own.
    """
    log = Path(f"{path.resolve()}-wal")
    if log.exists() and not path.exists():  # in this order: a file is created before its log
        message = (
            f"{path} is missing, but its log {log.name} is there: it was moved or deleted while in use; stop "
            "all processes that use it and put it back, or delete the log, too, if nothing in it is wanted"
        )
        raise StoreError(message)


def _existing(path: Path) -> FileId:
    try:
        identity = identity_of(path)
        is_folder, is_file = path.is_dir(), path.is_file()
    except OSError as error:
        message = f"{path} cannot be found: {error.strerror}; was it deleted or moved?"
        raise StoreUnavailable(message, retry_safe=False) from error
    if is_folder:
        raise StoreError(f"{path} is a folder; name a file in it")
    if not is_file:
        raise StoreError(f"{path} is a device or a pipe; name a file")
    return identity


def identity_of(path: Path) -> FileId:
    """Return the device and inode behind a path."""
    found = os.stat(path)  # noqa: PTH116 (runs twice per commit, and is three times as fast)
    return found.st_dev, found.st_ino


def _is_open_elsewhere(identity: FileId, wait: Callable[[int], bool]) -> bool:
    """Whether this process has the file open more often than our library's connections explain."""
    found = 0
    for entry in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):  # closed meanwhile, or not readable
            status = entry.stat()
            found += (status.st_dev, status.st_ino) == identity
    return found > 0 and found > sum(_has_file(db, identity, wait) for db in apsw.connections())


def _has_file(db: apsw.Connection, identity: FileId, wait: Callable[[int], bool]) -> bool:
    tries = 0
    while True:
        try:
            return bool(db.filename) and identity_of(Path(db.filename)) == identity
        except (apsw.ConnectionClosedError, OSError):
            return False
        except apsw.ThreadingViolationError:  # another thread is running a statement on it
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
    """Watch every `sqlite3.connect` and every fork, for the rest of the process's life."""
    global _is_watching  # noqa: PLW0603 (there is one process)
    if not _is_watching:
        _is_watching = True
        sys.addaudithook(_refuse_second_library)
        os.register_at_fork(after_in_child=_remember_fork)


def _remember_fork() -> None:
    """In a forked child, mark all open files: the library believes it has locks that only the parent has."""
    global _guard  # noqa: PLW0603 (a thread of the parent may have held it during the fork)
    _guard = threading.Lock()
    _inherited.update(_open_files, _app_connections.values())
    _open_files.clear()
    _app_connections.clear()


def _refuse_second_library(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "sqlite3.connect" or not (_open_files or _app_connections):
        return
    try:
        name = os.fsdecode(arguments[0])
        path = Path(unquote(urlsplit(name).path)) if name.startswith("file:") else Path(name)
        identity = identity_of(path)
    except (OSError, TypeError, ValueError):
        return  # no such file, or not a file
    with _guard:
        is_ours = identity in _open_files or any(
            id == identity and _is_open(db) for db, id in _app_connections.items()
        )
    if is_ours:
        name, _ = _open_files.get(identity, (name, 0))
        message = (
            f"{name} belongs to Fairlane and is open in this process; opening it with the standard "
            "library's sqlite3 would destroy it. Use Fairlane's connection, or the outbox in your own file."
        )
        raise StoreError(message)


def close(db: apsw.Connection) -> None:
    """Close a connection, whatever SQLite says."""
    with suppress(apsw.Error):  # it is closed all the same; the next connection finishes the log
        db.close()
