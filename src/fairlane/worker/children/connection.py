"""A child's end of the socket pair to its worker. Knows no job.

The main thread reads; any thread of the handler may send, through `Context.progress` or a log record.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from fairlane.worker.children.protocol import FROM_WORKER, FrameReader, FromChild, FromWorker, frame

_AT_ONCE: Final = 2**16


class FileIdentity(NamedTuple):
    """Which file a descriptor stands for: numbers are given again when a file is closed."""

    device: int
    inode: int


def identity_of(descriptor: int) -> FileIdentity | None:
    """Return what a descriptor stands for; None if it is closed."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return FileIdentity(found.st_dev, found.st_ino)


class ConnectionLost(Exception):  # noqa: N818 (the worker has gone, or a handler has closed the descriptor)
    """Nothing can be said to the worker any more."""


class WorkerConnection:
    """Reads frames of the worker and sends frames to it.

    While it `is_sending` in the main thread, no signal may raise there: half a frame would make the rest
    unreadable. `on_sent` is called in that thread when it has sent something.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)  # noqa: FBT003 (takes no names)
        self._descriptor = descriptor
        self._identity = identity_of(descriptor)
        self._socket = socket.socket(fileno=descriptor)
        self._frames = FrameReader()
        self._messages: deque[FromWorker] = deque()
        self._entry = threading.Condition()  # used as a plain lock
        self._sender: int | None = None
        self._main = threading.main_thread().ident
        self.on_sent: Callable[[], None] = _nothing

    @property
    def is_sending(self) -> bool:
        """Whether the main thread is sending a frame."""
        return self._sender is not None and self._sender == self._main

    @property
    def is_whole(self) -> bool:
        """Whether the descriptor still stands for this connection."""
        return identity_of(self._descriptor) == self._identity

    def receive(self) -> FromWorker | None:
        """Wait for the worker's next message; None if the worker is gone."""
        while not self._messages:
            if not self._read(0):
                return None
        return self._messages.popleft()

    def pending(self) -> list[FromWorker]:
        """Return what the worker has sent meanwhile, without waiting."""
        try:
            while self._read(socket.MSG_DONTWAIT):
                pass
        except BlockingIOError:
            pass
        found = list(self._messages)
        self._messages.clear()
        return found

    def _read(self, flags: int) -> bool:
        try:
            data = self._socket.recv(_AT_ONCE, flags)
        except (ConnectionError, TimeoutError):
            return False
        for message in self._frames.feed(data):
            self._messages.append(FROM_WORKER.decode(message))
        return bool(data)

    def send(self, message: FromChild) -> None:
        """Send one frame, whole; `ConnectionLost` if nobody could read it."""
        data = frame(message)
        with self._entry:
            self._sender = threading.get_ident()
            try:
                # A handler may have closed the descriptor, and a file of its own may have the number now.
                if not self.is_whole:
                    raise ConnectionLost
                self._socket.sendall(data)
            except (OSError, msgspec.MsgspecError) as error:
                raise ConnectionLost from error
            finally:
                self._sender = None
        if threading.get_ident() == self._main:
            self.on_sent()


def _nothing() -> None:
    """Do nothing: nobody waits for what was sent."""
