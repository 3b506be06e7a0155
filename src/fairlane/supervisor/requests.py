"""Turn signals into requests to the supervisor. Does nothing about them."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from types import FrameType
from typing import Any, Final, Self


class SignalMeaning(Enum):
    """What a signal asks for."""

    TERMINATE = "stop gracefully"
    INTERRUPT = "stop, from the keyboard"
    RESTART = "replace the processes one after the other"
    DUMP = "let every process log its stacks"


_CHUNK: Final = 4096


class SignalRequests:
    """The signals of this process while it is entered. Its descriptor is readable when one has come.

    SIGHUP asks for a rolling restart, but when the terminal was closed it asks to stop: nobody could use
    Ctrl-C any more.
    """

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._requests: deque[SignalMeaning] = deque()
        self._before: dict[int, Any] = {}
        self._wakeup_before = -1
        self._had_terminal = _has_terminal()

    def __enter__(self) -> Self:
        """Handle the signals."""
        for end in (self._reader, self._writer):
            end.settimeout(0)
        self._wakeup_before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD):
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        """Let the signals act as before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        self._reader.close()
        self._writer.close()

    def fileno(self) -> int:
        """Return the descriptor that tells of signals, for selectors."""
        return self._reader.fileno()

    def taken(self) -> Iterator[SignalMeaning]:
        """Take out the requests that have come."""
        with suppress(BlockingIOError):
            while self._reader.recv(_CHUNK):
                pass
        while self._requests:
            yield self._requests.popleft()

    def _note(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGHUP:
            is_hung_up = self._had_terminal and not _has_terminal()
            self._requests.append(SignalMeaning.TERMINATE if is_hung_up else SignalMeaning.RESTART)
        elif number == signal.SIGUSR1:
            self._requests.append(SignalMeaning.DUMP)
        elif number != signal.SIGCHLD:
            self._requests.append(
                SignalMeaning.INTERRUPT if number == signal.SIGINT else SignalMeaning.TERMINATE
            )


def _has_terminal() -> bool:
    try:
        return os.isatty(sys.stdin.fileno())
    except (OSError, ValueError, AttributeError):  # no standard input
        return False
