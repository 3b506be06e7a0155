"""The worker's link to its guardian: the process that kills children which would outlive their leases."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from fairlane.model.instants import SECOND, Micros
from fairlane.worker import report

_PROGRAM: Final = str(Path(__file__).with_name("guardian.py"))

MARGIN: Final[Micros] = SECOND // 2
"""How long before the end of its lease a child is killed at the latest. The worker stops it sooner."""

_END_TIMEOUT: Final = 1.0


class GuardianLink:
    """Tells the guardian of children and leases, and starts it again if it dies.

    `leases_good_for` may be called from any thread.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: int | None = None
        self._groups: set[int] = set()
        self._good_until: float | None = None
        # Used as a plain lock: a thread must not write to a number that is another file's by then.
        self._entry = threading.Condition()

    def watch(self, group: int) -> None:
        """Have a group killed should the worker go."""
        self._groups.add(group)
        if self._process is None:
            self._start()
        else:
            self._say(f"+{group}")

    def forget(self, group: int) -> None:
        """Leave a group alone. Called before its number can be given to another process."""
        self._groups.discard(group)
        self._say(f"-{group}")

    def leases_good_for(self, duration: Micros) -> None:
        """Note that all leases, renewed or just asked for, are good for at least this long from now."""
        self._good_until = time.monotonic() + (duration - min(MARGIN, duration // 4)) / SECOND
        self._say(f"={self._good_until}")

    def check(self) -> None:
        """Start another guardian if it has died; the next check tries again if the system cannot."""
        if self._process is not None and self._process.poll() is not None:
            report.guardian_died(self._process.pid)
            self.close()
        if self._process is None and self._groups:
            with suppress(OSError):
                self._start()

    def close(self) -> None:
        """Let the guardian end: it kills what it still watches."""
        process, self._process = self._process, None
        with self._entry:
            if self._pipe is not None:
                os.close(self._pipe)
                self._pipe = None
        if process is not None:
            try:
                process.wait(_END_TIMEOUT)
            except subprocess.TimeoutExpired:  # a process that a handler has forked holds the pipe open
                process.kill()
                process.wait()

    def _start(self) -> None:
        reading, writing = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 (our own program)
                [sys.executable, "-I", "-S", _PROGRAM],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            os.close(writing)
            raise
        finally:
            os.close(reading)
        os.set_blocking(writing, False)
        self._pipe = writing
        for group in self._groups:
            self._say(f"+{group}")
        if self._good_until is not None:
            self._say(f"={self._good_until}")

    def _say(self, line: str) -> None:
        # It may have died, and `check` starts another; or it is stopped, and the pipe is full.
        with self._entry, suppress(OSError):
            if self._pipe is not None:
                os.write(self._pipe, f"{line}\n".encode())
