"""Open the file: the right library, the right settings, and a clear word where it cannot be used."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import apsw

from fairlane.model.errors import ConfigError, StoreBusy, StoreError, StoreUnavailable

APPLICATION_ID: Final = 0x46414952
"""Marks the file as Fairlane's own; SQLite keeps it in the file's header."""

BUSY_SECONDS: Final = 5.0
_SYNCHRONOUS: Final = {"full": "FULL", "normal": "NORMAL"}

_held: dict[tuple[int, int], tuple[str, int]] = {}
_guard = threading.Lock()
_is_watching = False


class Location:
    """Where a store's file is and how durable it is, from `sqlite:///path?synchronous=full|normal`."""

    def __init__(self, url: str) -> None:
        """Read the URL: three slashes for a relative path, four for an absolute one."""
        parts = urlsplit(url)
        if parts.netloc or not parts.path.strip("/"):
            message = "it names no file."
            raise ConfigError(message, key="url", allowed="sqlite:///relative.db or sqlite:////absolute.db")
        self.path = Path(unquote(parts.path[1:])).absolute()
        options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        wanted = options.pop("synchronous", "full")
        if wanted not in _SYNCHRONOUS or options:
            message = "it has options that are not known."
            raise ConfigError(message, key="url", allowed="?synchronous=full or ?synchronous=normal")
        self.synchronous = _SYNCHRONOUS[wanted]


def connect(location: Location) -> apsw.Connection:
    """Open one connection with the settings that every connection needs."""
    try:
        db = apsw.Connection(str(location.path))
        db.set_busy_handler(_wait_politely)
        db.pragma("journal_mode", "wal")
        db.pragma("synchronous", location.synchronous)
        db.pragma("cache_size", -65_536)
        db.pragma("temp_store", "memory")
        db.pragma("journal_size_limit", 64 * 2**20)
    except apsw.Error as error:
        raise translated(error, str(location.path)) from error
    return db


def translated(error: apsw.Error, what: str = "") -> StoreError:
    """Say in our words what SQLite said, and whether a repeat is safe."""
    where = f"{what}: " if what else ""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(f"{where}another process kept the file locked for {BUSY_SECONDS:.0f} s")
        case apsw.FullError():
            return StoreUnavailable(f"{where}the disk is full; free some space and try again")
        case apsw.ReadOnlyError():
            return StoreError(f"{where}the file or its folder cannot be written to")
        case apsw.CantOpenError():
            return StoreUnavailable(f"{where}cannot be opened; does its folder exist?", retry_safe=False)
        case apsw.NotADBError() | apsw.CorruptError():
            return StoreError(f"{where}is damaged or no SQLite file ({error}); restore it from a backup")
        case apsw.IOError():
            return StoreUnavailable(f"{where}could not be read or written ({error})")
        case _:
            return StoreError(f"{where}{error}")


def _wait_politely(tries: int) -> bool:
    """Wait for another process's write, in short steps: SQLite's own steps grow to 100 ms."""
    if tries * 0.002 > BUSY_SECONDS:
        return False
    time.sleep(0.0005 if tries < 20 else 0.002)  # noqa: PLR2004 (a write lasts about a millisecond)
    return True


# ── one library per process and file ──────────────────────────────────────────
#
# Two SQLite libraries in one process on one file destroy it: POSIX locks belong to the process, so that
# one library's close drops the other's locks.


def take(path: Path, *, is_ours: bool = False) -> tuple[int, int]:
    """Mark the file as ours in this process; refuse if another library has it open already.

    `is_ours` says that this process has just made the file through the right library.
    """
    identity = _identity(path)
    with _guard:
        if identity not in _held and not is_ours and _is_open_elsewhere(identity):
            message = (
                f"{path} is already open in this process through another SQLite library; two of them on one "
                "file destroy it. Close the other connection, or use the outbox for your own file."
            )
            raise StoreError(message)
        _, holders = _held.get(identity, ("", 0))
        _held[identity] = (str(path), holders + 1)
        _watch()
    return identity


def release(identity: tuple[int, int]) -> None:
    """Let other libraries have the file again, once its last store in this process is closed."""
    with _guard:
        path, holders = _held[identity]
        if holders > 1:
            _held[identity] = (path, holders - 1)
        else:
            del _held[identity]


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _is_open_elsewhere(identity: tuple[int, int]) -> bool:
    for entry in Path("/proc/self/fd").glob("*"):
        try:
            found = entry.stat()
        except OSError:
            continue  # closed meanwhile, or not ours to see
        if (found.st_dev, found.st_ino) == identity:
            return True
    return False


def _watch() -> None:
    """Hear of every `sqlite3.connect` from now on. An audit hook stays for the life of the process."""
    global _is_watching  # noqa: PLW0603 (there is one process)
    if not _is_watching:
        _is_watching = True
        sys.addaudithook(_refuse_second_library)


def _refuse_second_library(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "sqlite3.connect" or not _held:
        return
    try:
        name = os.fsdecode(arguments[0])
        path = Path(unquote(urlsplit(name).path)) if name.startswith("file:") else Path(name)
        found = _held.get(_identity(path))
    except (OSError, TypeError, ValueError):
        return  # no such file, or no file at all
    if found is not None:
        message = (
            f"{found[0]} belongs to Fairlane and is open in this process; opening it with the standard "
            "library's sqlite3 would destroy it. Use Fairlane's connection, or the outbox in your own file."
        )
        raise StoreError(message)
