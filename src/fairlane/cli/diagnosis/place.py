"""Look at where the store is, before anything is opened: URL, file, rights, space. Makes nothing."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fairlane.cli.diagnosis.finding import Finding, Level
from fairlane.cli.session import file_of
from fairlane.model.errors import ConfigError
from fairlane.store.opening import open_store
from fairlane.store.sqlite.location import hindrance

_MEGABYTE: Final = 2**20
LITTLE_SPACE: Final = 1024 * _MEGABYTE
NO_SPACE: Final = 100 * _MEGABYTE


def place_findings(url: str) -> list[Finding]:
    """Check a store's place; if anything is bad, the store cannot be opened."""
    try:
        open_store(url)  # makes no connection: that is for the first verb
        path = file_of(url)
    except ConfigError as error:
        return [Finding("url", "bad", str(error), "Give --url, or correct it where it is set.")]
    scheme = url.partition(":")[0]
    if path is None:
        return [Finding("url", "ok", f"a {scheme} store")]
    return [Finding("url", "ok", f"a {scheme} store in {path}"), *_file(path)]


def _file(path: Path) -> Iterator[Finding]:
    if not path.exists():
        advice = "Correct the URL, or make the store with `fairlane migrate`."
        yield Finding("file", "bad", f"{path} is not there.", advice)
        return
    why = hindrance(str(path))
    if why:
        advice = (
            "Give this user the right to read and write the file and its folder, on a disk mounted for both."
        )
        yield Finding("file", "bad", f"{path} cannot be read and written: {why}.", advice)
        return
    yield Finding("file", "ok", f"{path.stat().st_size:,} bytes, readable and writable")
    yield from _access(path)
    yield space_finding(path.parent, shutil.disk_usage(path).free)


def _access(path: Path) -> Iterator[Finding]:
    """Warn of a file that users may read or write who are neither its owner nor in its group."""
    found = path.stat().st_mode
    if found & (stat.S_IROTH | stat.S_IWOTH):
        verb = "change" if found & stat.S_IWOTH else "read"
        advice = f"Run `chmod o-rwx {path}*`; to share it with a group, add ?group=NAME to the URL."
        yield Finding("access", "warn", f"every user of this machine may {verb} {path}.", advice)


def space_finding(folder: Path, free: int) -> Finding:
    """Judge how much space is left.

    >>> space_finding(Path("/data"), 50 * 2**20).level
    'bad'
    """
    level: Level = "bad" if free < NO_SPACE else "warn" if free < LITTLE_SPACE else "ok"
    advice = "" if level == "ok" else "Free some space: a full disk refuses every enqueue."
    return Finding("disk", level, f"{free // _MEGABYTE:,} MB free in {folder}", advice)
