"""A disk that fails when it is told to: SQLite's files go through it on their way to the real one.

A failing step is a write or a sync of the file or of its WAL, counted from `fail`. What happens then:

full   the write fails, as do all that follow until `mend`; syncs go on
io     the write or sync fails, and the next one goes on
torn   part of the write is done; then the process is dead: nothing reaches the disk any more
power  as torn; what was written since a file's last sync is there or not, each write by itself
"""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any, Final, Literal

import apsw
import pytest

from fairlane.store.sqlite import connection

Fault = Literal["full", "io", "torn", "power"]
_numbers: Final = itertools.count()


class Disk(apsw.VFS):
    """All files of one store on one disk."""

    def __init__(self, draw: random.Random, checkpoint: int = 12) -> None:
        """Work well at first. A checkpoint comes after so few pages, that faults meet it, too."""
        self._name = f"failing-disk-{next(_numbers)}"
        super().__init__(self._name, "", maxpathname=0)
        self.draw = draw
        self.steps = 0
        self.failures = 0
        self.is_dead = False
        self.is_unreadable = False
        self.files: list[_File] = []
        self._checkpoint = checkpoint
        self._fault: Fault | None = None
        self._at = 0

    def mount(self, patch: pytest.MonkeyPatch) -> None:
        """Let stores that are opened from now on use this disk."""

        def open_file(path: Path) -> apsw.Connection:
            db = apsw.Connection(str(path), vfs=self._name)
            db.wal_autocheckpoint(self._checkpoint)
            return db

        patch.setattr(connection, "open_file", open_file)

    def fail(self, fault: Fault, at: int) -> None:
        """Fail at this step, counted from here."""
        self.steps, self._fault, self._at = 0, fault, at

    def mend(self) -> None:
        """Work well again."""
        self._fault = None

    def on_sync(self, word: str) -> None:
        """Hear of a sync; a test may listen here."""

    def is_failing(self) -> bool:
        """Count a step and say whether it fails."""
        self.steps += 1
        if self.is_dead:
            return True
        if self._fault is None or self.steps < self._at or (self._fault != "full" and self.steps > self._at):
            return False
        self.failures += 1
        return True

    def write(self, file: _File, data: bytes, offset: int) -> None:
        """Do a write that fails."""
        if self.is_dead:
            raise apsw.IOError("the process is dead")
        if self._fault == "full":
            raise apsw.FullError("no space left on device")
        if self._fault in {"torn", "power"}:
            file.keep(data[: self.draw.randrange(len(data) + 1)], offset)
            self.die()
        raise apsw.IOError("input/output error")

    def sync(self) -> None:
        """Do a sync that fails."""
        if self._fault == "full" and not self.is_dead:
            return
        if self._fault in {"torn", "power"} and not self.is_dead:
            self.die()
        raise apsw.IOError("input/output error")

    def die(self) -> None:
        """Stop for good; a cut of the power also takes what was not synced."""
        self.is_dead = True
        if self._fault == "power":
            for file in self.files:
                file.lose(self.draw)

    # ── what SQLite calls ─────────────────────────────────────────────────────

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 (SQLite's word)
        """Open a file of ours."""
        file = _File(self, name, flags)
        self.files.append(file)
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802 (SQLite's word)
        """A dead process deletes nothing."""
        if self.is_dead:
            raise apsw.IOError("the process is dead")
        super().xDelete(filename, syncdir)


class _File(apsw.VFSFile):
    """One file on the disk."""

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        self._unsynced: list[tuple[int, bytes, int]] = []
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 (SQLite's word)
        """Write, or fail."""
        if self._disk.is_failing():
            self._disk.write(self, data, offset)
        self.keep(data, offset)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 (SQLite's word)
        """Read, or fail. A dead process reads nothing: what a cut of the power left is for the next one."""
        if self._disk.is_unreadable or self._disk.is_dead:
            raise apsw.IOError("input/output error")
        return super().xRead(amount, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 (SQLite's word)
        """Sync, or fail. The real disk is spared: it does not fail here."""
        self._disk.on_sync("sync")
        if self._disk.is_failing():
            self._disk.sync()
        self._unsynced.clear()

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 (SQLite's word)
        """A dead process cuts nothing."""
        if self._disk.is_dead:
            raise apsw.IOError("the process is dead")
        super().xTruncate(newsize)

    def xClose(self) -> None:  # noqa: N802 (SQLite's word)
        """Close; what was written stays as it is."""
        self._disk.files.remove(self)
        super().xClose()

    def keep(self, data: bytes, offset: int) -> None:
        """Write to the real file and remember what stood there."""
        size = self.xFileSize()
        before = super().xRead(min(len(data), size - offset), offset) if offset < size else b""
        self._unsynced.append((offset, before, len(data)))
        if data:
            super().xWrite(data, offset)

    def lose(self, draw: random.Random) -> None:
        """Put back what stood there before some of the writes since the last sync."""
        for offset, before, length in reversed(self._unsynced):
            if length and draw.random() < 0.5:
                super().xWrite(before.ljust(length, b"\0"), offset)
