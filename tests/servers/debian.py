"""Fetch a program from Debian's packages, without root and without touching the system.

A program that is installed is used as it is. Otherwise its package and the libraries that this machine
lacks are unpacked, once, into a folder that all worktrees share: `FAIRLANE_TEST_CACHE`, or one in /var/tmp.
If that cannot be done, the error says why.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

_PLACES: Final = f"{os.defpath}:/usr/sbin:/sbin"
_PATIENCE: Final = 120
_LIBRARIES: Final = ("lib", "lib/*-linux-*", "usr/lib", "usr/lib/*-linux-*")
_SETTINGS: Final = (
    "Debug::NoLocking=true",  # what is locked is the system's, of which we change nothing
    "APT::Sandbox::User=root",
    "Acquire::Retries=1",
    "Acquire::http::Timeout=20",
    "Acquire::https::Timeout=20",
)


class Program(NamedTuple):
    """A program and what a child must have in its environment to run it."""

    path: Path
    libraries: str = ""

    def environment(self) -> dict[str, str]:
        """Return the environment for a child: ours, and the libraries that came with the program."""
        return {**os.environ, "LD_LIBRARY_PATH": self.libraries} if self.libraries else {**os.environ}


def find(name: str, package: str | None = None) -> Program:
    """Return a program of this machine or of a package; LookupError says why there is none."""
    found = _find(name, package or name)
    if isinstance(found, str):
        raise LookupError(found)  # noqa: TRY004 (a reason is no wrong type)
    return found


@cache
def _find(name: str, package: str) -> Program | str:
    # A failure is cached, too: without a network each test would wait for it again.
    installed = shutil.which(name, path=_PLACES)
    if installed is not None:
        return Program(Path(installed))
    for tool in ("apt-get", "dpkg"):
        if shutil.which(tool, path=_PLACES) is None:
            return f"{name} is not installed, and there is no {tool} to fetch it with"
    try:
        return _unpacked(name, package)
    except (OSError, subprocess.SubprocessError) as error:
        words = getattr(error, "stderr", None) or str(error)
        return f"{name} is not installed, and could not be fetched: {words.strip()[-300:]}"


def _unpacked(name: str, package: str) -> Program:
    folder = cache_folder()
    root = folder / package
    with _locked(folder / f"{package}.lock"):
        if not root.is_dir():
            with tempfile.TemporaryDirectory(dir=folder) as work:
                _unpack(package, Path(work))
                (Path(work) / "root").rename(root)
    found = [root / place / name for place in ("usr/bin", "usr/sbin") if (root / place / name).exists()]
    if not found:
        message = f"the package {package} has no {name}"
        raise FileNotFoundError(message)
    libraries = (str(path) for place in _LIBRARIES for path in root.glob(place))
    return Program(found[0], ":".join(libraries))


def cache_folder() -> Path:
    """Make the folder for what was fetched: ours alone to write, for everybody to read."""
    given = os.environ.get("FAIRLANE_TEST_CACHE")
    folder = Path(given) if given else Path(f"/var/tmp/fairlane-tests-{os.geteuid()}")  # noqa: S108 (owner checked)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        message = f"{folder} belongs to somebody else"
        raise PermissionError(message)
    return folder


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process after the other in; the lock goes with its holder."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _unpack(package: str, work: Path) -> None:
    """Download a package with the libraries that are missing here, and unpack them side by side."""
    archives = work / "archives"
    (archives / "partial").mkdir(parents=True)
    (work / "lists" / "partial").mkdir(parents=True)
    download = ("install", "--yes", "--download-only", "--no-install-recommends", package)
    try:
        _apt(*download, archives=archives)
    except subprocess.CalledProcessError:
        # The system's lists are missing or old; ours are as good.
        _apt("update", archives=archives, lists=work / "lists")
        _apt(*download, archives=archives, lists=work / "lists")
    (work / "root").mkdir(mode=0o755)
    for archive in sorted(archives.glob("*.deb")):
        _run("dpkg", "-x", str(archive), str(work / "root"))


def _apt(*words: str, archives: Path, lists: Path | None = None) -> None:
    places = [f"Dir::Cache::Archives={archives}", *([f"Dir::State::Lists={lists}"] if lists else [])]
    options = [part for setting in (*_SETTINGS, *places) for part in ("-o", setting)]
    _run("apt-get", "-qq", *options, *words)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=_PATIENCE)  # noqa: S603 (our own words)
