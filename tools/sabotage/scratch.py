"""A copy of the tree to break things in: what git has of it, patched, tested and put right again."""

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
from tools.sabotage.witness import Seen

TOO_LONG: Final = 180.0
"""Seconds after which a run of tests is given up: a promise whose test hangs has no test that goes red."""

ALL_TOO_LONG: Final = 1_200.0
"""The same, for all named tests together."""

_decode = msgspec.json.Decoder(Seen).decode


class Ran(NamedTuple):
    """What tests did, and what pytest said about it; `is_hung` if they were given up."""

    seen: list[Seen]
    said: str
    is_hung: bool

    @property
    def last_word(self) -> str:
        """The last line that pytest said."""
        return self.said.strip().rpartition("\n")[2]


class Scratch:
    """One copy. Used by one thread at a time."""

    def __init__(self, tree: Path, folder: Path) -> None:
        """Copy the files that git knows, as they are now; whatever else lies around stays out."""
        self._folder = folder
        for name in _tracked(tree):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, target)

    @contextmanager
    def broken(self, patch: Patch) -> Generator[None]:
        """Have the patch applied for a while; the file is put right whatever happens."""
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
        # Python compares seconds and sizes: of two texts of one size within a second it would run the first.
        Path(cache_from_source(str(path))).unlink(missing_ok=True)

    def run(
        self, tests: Iterable[str], wanted: Iterable[str], known: Iterable[str], patience: float = TOO_LONG
    ) -> Ran:
        """Run tests with the copy's own source, on the wanted stores of those that are known."""
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
        return Ran([_decode(line) for line in lines], said, is_hung)


def _tracked(tree: Path) -> list[str]:
    command = ["git", "-C", str(tree), "ls-files", "-z"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 (no input of others)
    return [name for name in names.split("\0") if name and (tree / name).is_file()]
