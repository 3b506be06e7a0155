"""A copy of the tree to break: the files that git tracks, patched, tested and restored."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from tools.sabotage.patch import Patch
from tools.sabotage.witness import RecordedTest

TOO_LONG: Final = 180.0
"""Seconds after which a run of tests is killed: a test that hangs does not count as red."""

ALL_TOO_LONG: Final = 1_200.0
"""The same, for all named tests together."""

_decode = msgspec.json.Decoder(RecordedTest).decode


class PytestRun(NamedTuple):
    """The results of some tests and pytest's output; `is_hung` if they were killed."""

    seen: list[RecordedTest]
    said: str
    is_hung: bool

    @property
    def last_line(self) -> str:
        """The last line of pytest's output."""
        return self.said.strip().rpartition("\n")[2]


class ScratchTree:
    """One copy. Used by one thread at a time."""

    def __init__(self, tree: Path, folder: Path) -> None:
        """Copy the files that git tracks, as they are now, and nothing else."""
        self._folder = folder
        for name in _tracked(tree):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, target)

    @contextmanager
    def broken(self, patch: Patch) -> Generator[None]:
        """Apply the patch for the length of a block; the file is restored whatever happens."""
        path = self._folder / patch.file
        whole = path.read_bytes()
        broken = patch.applied(whole.decode()).encode()
        try:
            self._write(path, broken)
            yield
        finally:
            self._write(path, whole)

    def _write(self, path: Path, text: bytes) -> None:
        path.write_bytes(text)
        # Python's cache compares seconds and sizes: it would not notice a change of equal size within a
        # second.
        Path(cache_from_source(str(path))).unlink(missing_ok=True)

    def run(
        self, tests: Iterable[str], wanted: Iterable[str], known: Iterable[str], patience: float = TOO_LONG
    ) -> PytestRun:
        """Run tests with the copy's own source, on the wanted stores."""
        witness = self._folder / ".witness"
        witness.unlink(missing_ok=True)
        options = ["-q", "--tb=line", "-p", "no:cacheprovider", "-p", "tools.sabotage.witness"]
        options += [f"--witness={witness}", f"--stores={','.join(known)}", f"--wanted={','.join(wanted)}"]
        paths = [str(self._folder / "src"), str(self._folder)]
        process = subprocess.Popen(  # noqa: S603 (our own tests)
            [sys.executable, "-m", "pytest", *options, *sorted(set(tests))],
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=patience)
            is_hung = False
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the processes that the tests have started
            said, _ = process.communicate()
            is_hung = True
        lines = witness.read_bytes().splitlines() if witness.exists() else []
        return PytestRun([_decode(line) for line in lines], said, is_hung)


def _tracked(tree: Path) -> list[str]:
    command = ["git", "-C", str(tree), "ls-files", "-z"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 (no input of others)
    return [name for name in names.split("\0") if name and (tree / name).is_file()]
