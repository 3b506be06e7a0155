"""Where archives are written: a folder of this machine, or whatever fsspec reaches. Knows no job.

A file has its name only when all of it is written and safe; until then it has another one. A name that is
taken is never written again: what has it is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, Protocol, TypeAlias, cast
from uuid import uuid4

PART: Final = ".part"
"""How the name of a file ends that is not complete."""

Fill: TypeAlias = Callable[[IO[bytes]], None]


class Target(Protocol):
    """A place for files with names of two parts, a folder and a file in it. Blocks; raises OSError."""

    def has(self, name: str) -> bool:
        """Whether a complete file has this name."""

    def write(self, name: str, fill: Fill) -> None:
        """Write a file, unless one has this name."""


class Folder:
    """A folder of this machine. Its files are for their owner alone: they hold what the store holds."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def has(self, name: str) -> bool:
        """Whether a complete file has this name."""
        return (self._path / name).exists()

    def write(self, name: str, fill: Fill) -> None:
        """Write a file under another name, sync it, and rename it."""
        path = self._path / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Nobody else writes to this name: another leader may be at the same file, and be killed in it.
        part = path.with_name(f"{path.name}.{uuid4().hex}{PART}")
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                fill(file)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            if path.exists():
                return  # another leader was faster, and has tidied up
            raise
        for folder in (path.parent, self._path, self._path.parent):
            _sync_folder(folder)
        for left in path.parent.glob(f"{path.name}.*{PART}"):
            left.unlink(missing_ok=True)  # of a leader that was killed


class Remote:
    """A folder of an fsspec file system."""

    def __init__(self, files: Any, path: str) -> None:
        self._files = files
        self._path = PurePosixPath(path)

    def has(self, name: str) -> bool:
        """Whether a complete file has this name."""
        return bool(self._files.exists(str(self._path / name)))

    def write(self, name: str, fill: Fill) -> None:
        """Write a file under another name, and move it."""
        path = self._path / name
        part = f"{path}.{uuid4().hex}{PART}"
        self._files.makedirs(str(path.parent), exist_ok=True)
        try:
            with self._files.open(part, "wb") as file:
                fill(cast("IO[bytes]", file))
            self._files.mv(part, str(path))
        except BaseException:
            if self._files.exists(part):
                self._files.rm(part)
            raise


def open_target(to: str) -> Target:
    """Return the place that a folder or URL names. ValueError says what is missing to reach it."""
    if "://" not in to:
        return Folder(Path(to).expanduser())
    try:
        core: Any = import_module("fsspec.core")  # an extra; asked for only with a URL
    except ImportError:
        message = "archive.to is a URL: install fairlane[archive], and what fsspec needs for it"
        raise ValueError(message) from None
    files, path = core.url_to_fs(to)
    return Remote(files, path)


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder safe against a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
