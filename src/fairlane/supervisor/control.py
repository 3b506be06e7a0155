"""Both ends of the connection between a supervisor and one of its processes; the essay has the protocol."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from fairlane.model.instants import Micros

VARIABLE: Final = "FAIRLANE_SUPERVISED"
"""Tells a process that it is supervised: which it is, of how many, and the descriptor of its connection."""

_FORM: Final = re.compile(r"(worker|scheduler|web) (\d+)/(\d+):(\d+)")
_CHUNK: Final = 4096

READY: Final = "ready"
ALIVE: Final = "alive"
REPLACE: Final = "replace"
CLAIMS_ENDED: Final = "claims-ended"

SERVE: Final = "serve"
QUARANTINE: Final = "quarantine"
DRAIN: Final = "drain"
INTERRUPT: Final = "interrupt"
STOP: Final = "stop"


class MessageStream:
    """One end: sends lines, and receives those that are there. Neither waits."""

    def __init__(self, end: socket.socket) -> None:
        end.settimeout(0)
        self._end = end
        self._received = b""
        self.has_ended = False

    def fileno(self) -> int:
        """Return the descriptor, for selectors."""
        return self._end.fileno()

    def send(self, message: str) -> None:
        """Send a message. One that the other end does not take is lost: it has ended, or will be killed."""
        with suppress(OSError):
            self._end.send(f"{message}\n".encode())

    def receive(self) -> list[str]:
        """Return the messages that have come. At the end of the stream, sets `has_ended`."""
        while True:
            try:
                data = self._end.recv(_CHUNK)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                data = b""
            if not data:
                self.has_ended = True
                break
            self._received += data
        *lines, self._received = self._received.split(b"\n")
        return [line.decode() for line in lines]

    def close(self) -> None:
        """Close this end."""
        self._end.close()


ProcessKind: TypeAlias = Literal["worker", "scheduler", "web"]
"""What a process does: it runs jobs, does the duties, or serves the web."""


class ProcessNumber(NamedTuple):
    """Which process of how many of its kind this is, counted from 0."""

    position: int
    total: int
    kind: ProcessKind = "worker"

    def __str__(self) -> str:
        """Return it in words.

        >>> str(ProcessNumber(0, 2)), str(ProcessNumber(0, 1, "web"))
        ('worker process 1 of 2', 'web process')
        """
        return f"{self.kind} process" + (
            f" {self.position + 1} of {self.total}" if self.kind == "worker" else ""
        )


class SupervisorConnection:
    """A process's end. Tells the supervisor what becomes of it; of a worker, as its observer."""

    def __init__(self, connection: MessageStream, number: ProcessNumber) -> None:
        self.number = number
        self._connection = connection

    @classmethod
    def inherited(cls, environ: MutableMapping[str, str]) -> SupervisorConnection | None:
        """Return this process's connection; None if it has no supervisor.

        Removes it from the environment, and from what programs inherit that a handler starts.
        """
        found = _FORM.fullmatch(environ.pop(VARIABLE, ""))
        if found is None:
            return None
        kind, *numbers = found.groups()
        index, count, descriptor = map(int, numbers)
        os.set_inheritable(descriptor, False)  # noqa: FBT003 (no keyword there)
        return cls(
            MessageStream(socket.socket(fileno=descriptor)),
            ProcessNumber(index - 1, count, cast("ProcessKind", kind)),
        )

    def fileno(self) -> int:
        """Return the descriptor, for an event loop."""
        return self._connection.fileno()

    def receive(self, obey: Callable[[str], None]) -> bool:
        """Obey each message that has come; return False, and drain, if the supervisor is gone."""
        for message in self._connection.receive():
            obey(message)
        if self._connection.has_ended:
            obey(DRAIN)
        return not self._connection.has_ended

    def ready(self, shutdown_deadline: Micros) -> None:
        """Report that the worker is registered."""
        self._connection.send(f"{READY} {shutdown_deadline}")

    def replacement_wanted(self) -> None:
        """Report that the worker drains by itself."""
        self._connection.send(REPLACE)

    def claims_ended(self) -> None:
        """Report that the worker claims nothing more."""
        self._connection.send(CLAIMS_ENDED)

    def alive(self) -> None:
        """Report that the worker's portal thread runs."""
        self._connection.send(ALIVE)


def variable_of(number: ProcessNumber, descriptor: int) -> str:
    """Return the variable's value for one process.

    >>> variable_of(ProcessNumber(0, 2), 7)
    'worker 1/2:7'
    """
    return f"{number.kind} {number.position + 1}/{number.total}:{descriptor}"
