"""Find what a handler has left behind in its process, and put right what can be put right.

The next job may be another tenant's. A child with leftovers that cannot be undone runs no further job.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import Final

from fairlane.worker.children.connection import identity_of

_SIGNALS: Final = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGCHLD,
    signal.SIGHUP,
    signal.SIGPIPE,
)
_STANDARD: Final = (0, 1, 2)
_OWN: Final = ("fairlane-", "asyncio_")
"""Names of threads that stay: Fairlane's own, and idle ones of the loop's executor."""

_CHILD_SUBREAPER: Final = 36
"""The number of this option of Linux' `prctl`."""


class Leftovers:
    """Compares the process with what it was before its first job."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._home = os.getcwd()  # noqa: PTH109 (compared after every job: a Path costs ten times as much)
        self._handlers = [signal.getsignal(number) for number in _SIGNALS]
        self._files = [identity_of(number) for number in _STANDARD]
        self._threads = frozenset(threading.enumerate())
        self._had_children = _has_children()

    def found(self, *, was_stopped: bool) -> str | None:
        """Undo what can be undone; return why no further job may run here, None if one may."""
        signal.setitimer(signal.ITIMER_REAL, 0)  # an alarm would kill the next job
        if [signal.getsignal(number) for number in _SIGNALS] != self._handlers:
            return "it has set signal handlers"
        if [identity_of(number) for number in _STANDARD] != self._files:
            return "it has closed or replaced standard input or output"
        if threading.active_count() > len(self._threads):
            name = self._thread_left(was_stopped=was_stopped)
            if name is not None:
                return f"it has left thread {name} running"
        if not self._had_children and _has_children():
            return "it has left a process running"
        return self._go_home()

    def _thread_left(self, *, was_stopped: bool) -> str | None:
        for thread in threading.enumerate():
            # A handler that was stopped may have left a function in the executor.
            is_own = thread.name.startswith(_OWN[:1] if was_stopped else _OWN)
            if thread not in self._threads and not is_own:
                return thread.name[:80]
        return None

    def _go_home(self) -> str | None:
        try:
            if os.getcwd() != self._home:  # noqa: PTH109 (as above)
                os.chdir(self._home)
        except OSError:
            return "the working directory does not exist any more"
        return None


def _has_children() -> bool:
    """Whether this process has children that live; those that have ended are forgotten."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            return False
        if ended is None:
            return True


def adopt_orphans() -> None:
    """Become the parent of processes whose own parent ends, so that none goes unnoticed. Linux only."""
    with suppress(ImportError, OSError, AttributeError):
        from ctypes import CDLL  # noqa: PLC0415 (not everywhere)

        CDLL(None).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)
