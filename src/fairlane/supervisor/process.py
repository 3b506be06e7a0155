"""One worker process as its supervisor sees it: what it was told, what it has said, how it ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from fairlane.model.instants import SECOND
from fairlane.supervisor import control
from fairlane.supervisor.control import MessageStream, ProcessNumber
from fairlane.supervisor.endings import Ending

LEAVE_GRACE: Final = 10.0
"""Seconds that a process has beyond its shutdown deadline before it is killed; by itself it needs six."""

STOP_GRACE: Final = 5.0
"""Seconds that a process has after it was told to stop now; by itself it needs two."""


class WorkerProcess:
    """One process. Times are seconds of the monotonic clock, given by the caller."""

    def __init__(
        self, arguments: Sequence[str], environ: Mapping[str, str], number: ProcessNumber, now: float
    ) -> None:
        """Start it, paused, in a process group of its own: Ctrl-C reaches the supervisor alone."""
        own, its = socket.socketpair()
        with its:
            self._popen = subprocess.Popen(  # noqa: S603 (this same program)
                # -P: modules in the current folder must not shadow those that Fairlane itself imports.
                [sys.executable, "-P", "-m", "fairlane", *arguments],
                env={**environ, control.VARIABLE: control.variable_of(number, its.fileno())},
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
                process_group=0,
            )
        self.connection = MessageStream(own)
        self.pid = self._popen.pid
        self.started_at = now
        self.ready_at: float | None = None
        self.alive_at = now
        self.is_serving = False
        self.is_told_to_leave = False
        self.wants_replacement = False
        self.has_ended_claims = False
        self.was_killed = False
        self.kill_at: float | None = None
        self._deadline = 0.0

    @property
    def is_ready(self) -> bool:
        """Whether it has registered."""
        return self.ready_at is not None

    def hear(self, now: float) -> None:
        """Note what it has said since."""
        for message in self.connection.receive():
            self.alive_at = now
            word, _, value = message.partition(" ")
            if word == control.READY:
                self.ready_at = now
                self._deadline = int(value) / SECOND
            elif word == control.REPLACE:
                self.wants_replacement = True
                self.kill_at = now + self._deadline + LEAVE_GRACE
            elif word == control.CLAIMS_ENDED:
                self.has_ended_claims = True

    def ended(self, *, is_out_of_memory: bool) -> Ending | None:
        """Return how it has ended; None if it runs."""
        code = self._popen.poll()
        if code is None:
            return None
        self.connection.close()
        return Ending(code, code == -signal.SIGKILL and is_out_of_memory and not self.was_killed)

    def serve(self) -> None:
        """Let it claim."""
        self.is_serving = True
        self.connection.send(control.SERVE)

    def quarantine(self) -> None:
        """Let it run every handler in a child process for a while."""
        self.connection.send(control.QUARANTINE)

    def dump(self) -> None:
        """Let it log its stacks. One that is not ready may not handle the signal yet, and would die of it."""
        if self.is_ready:
            self._popen.send_signal(signal.SIGUSR1)

    def leave(self, now: float, message: str = control.DRAIN) -> None:
        """Let it drain and end. One that is not ready runs no job yet, and may not read messages: end it."""
        self.is_told_to_leave = True
        if self.is_ready:
            self.connection.send(message)
            self._kill_within(now, self._deadline + LEAVE_GRACE)
        else:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
            self._kill_within(now, STOP_GRACE)

    def stop(self, now: float) -> None:
        """Let it stop its jobs now, and end."""
        self.leave(now, control.STOP)
        self._kill_within(now, STOP_GRACE)

    def kill(self) -> None:
        """Kill it, and what it has started in its process group."""
        self.was_killed = True
        self.kill_at = None
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def _kill_within(self, now: float, seconds: float) -> None:
        self.kill_at = now + seconds if self.kill_at is None else min(self.kill_at, now + seconds)
