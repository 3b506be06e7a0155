"""Stop the handler of a child when its worker says so: a frame says why, a signal interrupts the handler.

A plain handler runs in the main thread, where Python calls signal handlers, so the signal can raise in it. An
async handler's task is cancelled. A signal that comes when no handler runs does nothing.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio import CancelledError
from collections.abc import Callable
from contextvars import Context as Variables
from types import FrameType
from typing import Any, Final

from fairlane.app.task.context import SoftTimeout
from fairlane.worker.attempts.live_attempts import StopCause
from fairlane.worker.children.child.attempt import ChildAttempt
from fairlane.worker.children.connection import WorkerConnection
from fairlane.worker.children.protocol import Stop

STOP: Final = signal.SIGTERM
SOFT_TIMEOUT: Final = signal.SIGUSR2


class ChildStops:
    """Delivers the worker's stops to the running handler. Used by the main thread only."""

    def __init__(self, connection: WorkerConnection) -> None:
        self._connection = connection
        self._pid = os.getpid()
        self._attempt: ChildAttempt | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._may_raise = False
        self._late: BaseException | None = None

    def install(self) -> None:
        """Take the signals; Ctrl-C in a terminal is the worker's business."""
        for number in (STOP, SOFT_TIMEOUT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def begin(self, attempt: ChildAttempt) -> None:
        """Deliver stops to this attempt from now on."""
        self._attempt, self._late = attempt, None

    def end(self) -> None:
        """Deliver none until the next attempt begins."""
        self._attempt = self._loop = None

    def call(self, variables: Variables, call: Callable[[], Any]) -> Any:
        """Make a plain call that a stop may interrupt, wherever below this function it is."""
        self._may_raise = True
        try:
            if self._late is not None:
                raise self._late
            return variables.run(call)
        finally:
            self._may_raise = False

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel the attempt's task, which runs in this loop, instead of raising."""
        self._loop = loop

    def after_sending(self) -> None:
        """Raise what a signal would have raised if nothing had been sent just then."""
        late, self._late = self._late, None
        if late is not None and self._may_raise:
            raise late

    def _on_signal(self, _number: int, interrupted: FrameType | None) -> None:
        attempt = self._attempt
        if attempt is None or os.getpid() != self._pid or not self._connection.is_whole:
            return
        raised: BaseException | None = None
        for message in self._connection.pending():
            if isinstance(message, Stop) and message.fence == attempt.claim.fence:
                raised = self._stop(attempt, message) or raised
        if raised is None:
            return
        if self._loop is not None:
            if attempt.task is not None:
                self._loop.call_soon_threadsafe(attempt.task.cancel)
        elif self._connection.is_sending or not self._may_raise:
            self._late = raised
        elif interrupted is None or interrupted.f_code is not _CALL_CODE:
            raise raised

    def _stop(self, attempt: ChildAttempt, message: Stop) -> BaseException | None:
        """Set the flags that the handler sees; return what a plain one gets raised."""
        if message.cause is None:
            attempt.control.is_soft_timeout_due = True
            is_plain = self._loop is None
            return SoftTimeout() if not is_plain or attempt.control.take_soft_timeout() else None
        attempt.cause = StopCause[message.cause]
        attempt.control.stop(attempt.cause.value, is_lost=attempt.cause.is_lost)
        return CancelledError(attempt.cause.value)


_CALL_CODE: Final = ChildStops.call.__code__
