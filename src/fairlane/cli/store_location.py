"""Check where the store is before it is opened: URL, file, permissions, disk space. Creates nothing."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fairlane.cli.invocation import file_of
from fairlane.diagnosis.result import CheckResult, Level
from fairlane.model.errors import ConfigError
from fairlane.store.opening import open_store
from fairlane.store.sqlite.location import access_problem

_MEGABYTE: Final = 2**20
LITTLE_SPACE: Final = 1024 * _MEGABYTE
NO_SPACE: Final = 100 * _MEGABYTE


def check_location(url: str) -> list[CheckResult]:
    """Check a store's location; if anything is bad, the store cannot be opened."""
    try:
        open_store(url)  # checks the URL only: the first verb connects
        path = file_of(url)
    except ConfigError as error:
        return [CheckResult("url", "bad", str(error), "Give --url, or correct the URL where it is set.")]
    scheme = url.partition(":")[0]
    if path is None:
        return [CheckResult("url", "ok", f"a {scheme} store")]
    return [CheckResult("url", "ok", f"a {scheme} store in {path}"), *_file(path)]


def _file(path: Path) -> Iterator[CheckResult]:
    if not path.exists():
        advice = "Correct the URL, or create the store with `fairlane migrate`."
        yield CheckResult("file", "bad", f"{path} does not exist.", advice)
        return
    why = access_problem(str(path))
    if why:
        advice = "Give this user read and write permission on the file and its folder, on a writable disk."
        yield CheckResult("file", "bad", f"{path} cannot be read and written: {why}.", advice)
        return
    yield CheckResult("file", "ok", f"{path.stat().st_size:,} bytes, readable and writable")
    yield from _access(path)
    yield check_space(path.parent, shutil.disk_usage(path).free)


def _access(path: Path) -> Iterator[CheckResult]:
    """Warn about a file that users outside its group can read or write."""
    found = path.stat().st_mode
    if found & (stat.S_IROTH | stat.S_IWOTH):
        verb = "change" if found & stat.S_IWOTH else "read"
        advice = f"Run `chmod o-rwx {path}*`; to share it with a group, add ?group=NAME to the URL."
        yield CheckResult("access", "warn", f"every user of this machine can {verb} {path}.", advice)


def check_space(folder: Path, free: int) -> CheckResult:
    """Check the free disk space.

    >>> check_space(Path("/data"), 50 * 2**20).level
    'bad'
    """
    level: Level = "bad" if free < NO_SPACE else "warn" if free < LITTLE_SPACE else "ok"
    advice = "" if level == "ok" else "Free some space: a full disk refuses every enqueue."
    return CheckResult("disk", level, f"{free // _MEGABYTE:,} MB free in {folder}", advice)
