"""Start children and wait for what they say. A child that fails shows its own words."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parent.parent.parent


def run_program(name: str, *arguments: str, before: tuple[str, ...] = ()) -> str:
    """Run a program of this folder to its successful end and return its output."""
    command = (*before, sys.executable, "-m", f"tests.faults.{name}", *arguments)
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)  # noqa: S603 (our own program)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Child:
    """A process of `tests.faults.child` that has loaded everything and waits to be told to begin."""

    def __init__(self, role: str, file: Path, number: int = 0) -> None:
        """Start it; `begin` waits until it is ready."""
        Child.made += 1
        self.ledger = file.parent / f"{role}-{Child.made}.jsonl"
        command = (sys.executable, "-m", "tests.faults.child", role, str(file), str(self.ledger), str(number))
        self.process = subprocess.Popen(  # noqa: S603 (our own program)
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    made = 0

    def begin(self) -> None:
        """Wait until it has loaded everything, then let it go."""
        assert self.process.stdin is not None
        self.steps(1)
        self.process.stdin.write(b"!")
        self.process.stdin.close()

    def steps(self, number: int) -> None:
        """Wait until it has reported that many more acknowledged steps."""
        assert self.process.stdout is not None
        output = self.process.stdout.read(number)
        assert len(output) == number, self._words()

    def kill(self) -> None:
        """SIGKILL; it must have been alive until then."""
        assert self.process.poll() is None, self._words()
        self.process.kill()
        self._collect()

    def end(self) -> None:
        """Wait for its own end, which must be a good one."""
        words = self._collect()
        assert self.process.returncode == 0, words

    def stop(self) -> None:
        """Make sure that it is gone."""
        if self.process.poll() is None:
            self.process.kill()
            self._collect()
        if self.process.stdin is not None:
            self.process.stdin.close()

    def _collect(self) -> str:
        assert self.process.stdout is not None
        self.process.stdout.read()
        words = self._words()
        self.process.stdout.close()
        self.process.wait()
        return words

    def _words(self) -> str:
        assert self.process.stderr is not None
        if self.process.stderr.closed:
            return ""
        words = self.process.stderr.read().decode()
        self.process.stderr.close()
        return words


Start: TypeAlias = Callable[[str, Path, int], Child]
"""Starts a child in a role, on a file, with a number."""
