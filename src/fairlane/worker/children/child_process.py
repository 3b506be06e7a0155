"""The worker's side of one child process: what it is told, what it says, and how it ends.

Used in the worker's loop only.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from logging import getLevelName, getLogger, makeLogRecord
from typing import Final, Protocol

import msgspec

from fairlane.app.task.attempt_log import LogTail
from fairlane.model.failure import Failure
from fairlane.model.instants import Micros
from fairlane.model.retry.decision import AttemptResult
from fairlane.worker.attempts.live_attempts import LiveAttempt
from fairlane.worker.children import memory
from fairlane.worker.children.child.stops import SOFT_TIMEOUT, STOP
from fairlane.worker.children.launch import Launched
from fairlane.worker.children.output import OutputCapture
from fairlane.worker.children.protocol import (
    FROM_CHILD,
    AttemptEnded,
    FrameReader,
    FromChild,
    FromWorker,
    Logged,
    MetadataWritten,
    NotReady,
    ProtocolError,
    Ready,
    Reported,
    Setup,
    Spent,
    Start,
    Stop,
    SucceededIn,
    frame,
    metadata_in,
    result_in,
)

_AT_ONCE: Final = 2**18
_LAST_READS: Final = 256
"""How often the connection of a child that has ended is read: a process that it left may write for ever."""

_LAST_MOMENT: Final = 0.5
"""Seconds that a child may live after it has closed its connection: usually it is ending."""


class ChildListener(Protocol):
    """Hears what becomes of a child. Called in the worker's loop."""

    def ready(self, child: ChildProcess) -> None:
        """Called when the application is imported."""
        ...

    def job_ended(
        self, child: ChildProcess, attempt: LiveAttempt, result: AttemptResult | None, leftovers: str | None
    ) -> None:
        """Called when an attempt has ended; `leftovers` says why the child runs no other."""
        ...

    def forget_group(self, group: int) -> None:
        """Called when a process group has ended, before its number can be used again."""
        ...

    def died(self, child: ChildProcess, attempt: LiveAttempt | None, code: int) -> None:
        """Called when the process is gone, with the attempt that it ran."""
        ...


class ChildProcess:
    """One child. It runs `attempt`; None while it is idle or starting.

    `start_failure` is why it could not import the application. Once it `is_gone`, nothing is heard of it.
    """

    def __init__(self, launched: Launched, setup: Setup, listener: ChildListener, now: Micros) -> None:
        self.pid = launched.process.pid
        self.attempt: LiveAttempt | None = None
        self.started_at = now
        self.idle_since = now
        self.jobs = 0
        self.resident = 0
        self.is_ready = False
        self.is_retired = False
        self.is_gone = False
        self.start_failure: Failure | None = None
        self._process = launched.process
        self._connection = launched.connection
        self._output = OutputCapture(launched.output, self.pid)
        self._listener = listener
        self._frames = FrameReader()
        self._unsent = b""
        self._has_writer = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._connection, self._read)
        self._pidfd = _pidfd(self.pid)
        if self._pidfd is not None:
            self._loop.add_reader(self._pidfd, self.reap)
        self._send(setup)

    # ── what it is told ───────────────────────────────────────────────────────

    def run(self, attempt: LiveAttempt, start: Start) -> None:
        """Run an attempt. The child must be ready and idle."""
        self.attempt = attempt
        self.jobs += 1
        attempt.child = self
        self._output.begin(attempt)
        self._send(start)

    def stop(self, attempt: LiveAttempt) -> None:
        """Ask the handler to stop: a frame says why, a signal interrupts it."""
        if self.attempt is attempt:
            cause = attempt.cause
            self._send(Stop(attempt.claim.fence, None if cause is None else cause.name))
            self._signal(SOFT_TIMEOUT if cause is None else STOP)

    def terminate(self, attempt: LiveAttempt) -> None:
        """The same, and ask every process of its group to end."""
        if self.attempt is attempt:
            cause = attempt.cause
            self._send(Stop(attempt.claim.fence, None if cause is None else cause.name))
            memory.signal_group(self.pid, STOP)

    def kill(self, attempt: LiveAttempt) -> None:
        """Kill the child with all that it has started; nothing more is heard of the attempt."""
        if self.attempt is attempt:
            self.attempt = None
            self.kill_now()

    def kill_now(self) -> None:
        """Kill the child with all that it has started."""
        if not self.is_gone:
            memory.kill_family(self.pid)

    def retire(self) -> None:
        """Let an idle child end by itself: it reads the end of its connection."""
        self.is_retired = True
        self._close_connection()

    def dump_stacks(self) -> None:
        """Let the child write the stacks of its threads to its output, which is logged."""
        self._signal(signal.SIGUSR1)

    def _signal(self, number: signal.Signals) -> None:
        # Not through Popen, which would reap a child that has just ended, and its number with it.
        if not self.is_gone:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _send(self, message: FromWorker) -> None:
        if self._connection.fileno() < 0:
            return
        is_waiting = bool(self._unsent)
        self._unsent += frame(message)
        if not is_waiting:
            self._write()

    def _write(self) -> None:
        """Send as much as the connection takes; the rest when it takes more."""
        try:
            sent = self._connection.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError:  # its end is noticed elsewhere
            sent = len(self._unsent)
        self._unsent = self._unsent[sent:]
        if self._unsent:
            self._loop.add_writer(self._connection, self._write)
        elif self._has_writer:
            self._loop.remove_writer(self._connection)
        self._has_writer = bool(self._unsent)

    # ── what it says ──────────────────────────────────────────────────────────

    def _read(self) -> bool:
        """Handle what the child has sent; return whether there may be more."""
        if self._connection.fileno() < 0:
            return False
        try:
            data = self._connection.recv(_AT_ONCE)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._end_connection()
            return False
        try:
            for message in self._frames.feed(data):
                self._hear(FROM_CHILD.decode(message))
        except (ProtocolError, msgspec.DecodeError):
            self.kill_now()  # the handler has written to the connection; its attempt ends as a crash
            return False
        return True

    def _hear(self, message: FromChild) -> None:
        attempt = self.attempt
        match message:
            case AttemptEnded() if attempt is not None:
                self._hear_end(message, attempt)
            case Ready():
                self.is_ready = True
                self._listener.ready(self)
            case NotReady():
                self.start_failure = message.failure
            case Reported() if attempt is not None:
                attempt.control.set_progress(message.progress)
            case MetadataWritten() if attempt is not None:
                attempt.control.set_metadata(metadata_in(message.metadata))
            case Spent() if attempt is not None:
                attempt.control.spent = max(attempt.control.spent, message.total)
            case SucceededIn() if attempt is not None:
                attempt.control.has_succeeded = True
            case Logged():
                _log(message)
            case _:
                pass  # of an attempt that is over

    def _hear_end(self, message: AttemptEnded, attempt: LiveAttempt) -> None:
        result = result_in(message)
        if message.metadata is not None:
            attempt.control.set_metadata(metadata_in(message.metadata))
        attempt.control.spent = max(attempt.control.spent, message.spent)
        self._output.end()
        self.attempt = None
        self.resident = message.resident
        if message.log is not None:
            attempt.control.tail = LogTail()
            attempt.control.tail.add(message.log)
        self._listener.job_ended(self, attempt, result, message.leftovers)

    # ── its end ───────────────────────────────────────────────────────────────

    def reap(self) -> None:
        """Notice that the process has ended, if it has; what it has said before counts."""
        if self.is_gone or not self._has_ended():
            return
        # The number is the child's until it is waited for: what is left of its group dies with it.
        memory.signal_group(self.pid, signal.SIGKILL)
        for _ in range(_LAST_READS):
            if not self._read():
                break
        self._listener.forget_group(self.pid)
        code = self._process.wait()
        self._close()
        attempt, self.attempt = self.attempt, None
        self._listener.died(self, attempt, code)

    def _has_ended(self) -> bool:
        """Whether the process has ended; its number is still its own after that."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # somebody else in this process has waited for it
            return True

    def _end_connection(self) -> None:
        """Close the connection. A child that has closed its end, and lives, can report nothing any more."""
        self._close_connection()
        if not self.is_retired:
            self._loop.call_later(_LAST_MOMENT, self.kill_now)

    def _close_connection(self) -> None:
        if self._connection.fileno() >= 0:
            self._loop.remove_reader(self._connection)
            self._loop.remove_writer(self._connection)
            self._connection.close()

    def _close(self) -> None:
        self.is_gone = True
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        self._close_connection()
        self._output.close()


def _pidfd(pid: int) -> int | None:
    """Return a descriptor that becomes readable when the process ends; None where there is no such thing."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _log(message: Logged) -> None:
    """Let the worker's log handlers write a record of the child."""
    logger = getLogger(message.name or None)
    if not logger.isEnabledFor(message.level):
        return
    fields = {
        **message.extra,
        "name": message.name,
        "levelno": message.level,
        "levelname": getLevelName(message.level),
        "msg": message.message,
        "args": (),
        "created": message.created,
        "pathname": message.path,
        "lineno": message.line,
        "funcName": message.function,
        "exc_text": message.error,
    }
    with suppress(Exception):  # an application's log handler must not cost what the child has sent besides
        logger.handle(makeLogRecord(fields))
