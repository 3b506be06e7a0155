"""Read what a child writes to standard output and error, bounded, and log it with its tenant and job."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from logging import getLogger
from typing import Final

from fairlane.model.failure import bounded
from fairlane.worker.attempts.live_attempts import LiveAttempt

MAX_BYTES: Final = 64 * 1024
"""How much output of one attempt is logged; the rest is read and dropped."""

LINE_CHARS: Final = 4_000
_AT_ONCE: Final = 2**20
_LAST_READS: Final = 8
"""How often the pipe is read at the end of an attempt: a process left behind may fill it for ever."""

log: Final = getLogger("fairlane.output")


class OutputCapture:
    """The output of one child. What comes between two jobs belongs to none."""

    def __init__(self, descriptor: int, pid: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._pid = pid
        self._rest = b""
        self._bytes = 0
        self._dropped = 0
        self._attempt: LiveAttempt | None = None
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._read)

    def begin(self, attempt: LiveAttempt) -> None:
        """Let output belong to an attempt from now on."""
        self._finish()
        self._attempt = attempt

    def end(self) -> None:
        """Log what the attempt has written until now."""
        for _ in range(_LAST_READS):
            if not self._read():
                break
        self._finish()
        self._attempt = None

    def close(self) -> None:
        """Read what is left, and no more."""
        if self._descriptor >= 0:
            self.end()
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _read(self) -> bool:
        """Take what the pipe holds; return whether there may be more."""
        if self._descriptor < 0:
            return False
        try:
            data = os.read(self._descriptor, _AT_ONCE)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._descriptor)
            return False
        kept = data[: max(0, MAX_BYTES - self._bytes)]
        self._bytes += len(kept)
        self._dropped += len(data) - len(kept)
        *lines, self._rest = (self._rest + kept).split(b"\n")
        for line in lines:
            self._log(line)
        return True

    def _finish(self) -> None:
        if self._rest:
            self._log(self._rest)
        if self._dropped:
            self._log(f"({self._dropped} more bytes of output were dropped)".encode(), logging.WARNING)
        self._rest, self._bytes, self._dropped = b"", 0, 0

    def _log(self, line: bytes, level: int = logging.INFO) -> None:
        text = bounded(line.decode("utf-8", "replace"), LINE_CHARS)
        if not text:
            return
        about = {} if self._attempt is None else self._attempt.log_fields()
        where = "child" if self._attempt is None else f"job {self._attempt.claim.job.id}"
        extra = {"event": "output", "pid": self._pid, **about}
        with suppress(Exception):  # an application's log handler must not harm the job whose output it is
            log.log(level, "%s: %s", where, text, extra=extra)
