"""Wake waiting workers: a datagram to each process's Unix socket, in a folder beside the file (S56).

A datagram may be lost, so a waiting worker also checks every 250 ms whether another connection has written to
the file. Inside a process, hints need no datagram.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from fairlane.store.wake_hints import WakeHints

POLL_SECONDS: Final = 0.25
_MAX_DATAGRAM: Final = 60_000


class Hint(msgspec.Struct, array_like=True):
    """The content of a datagram; both lists empty means everything."""

    queues: list[str]
    workers: list[str]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Hint).decode


class Wake:
    """The wake-up sockets of one file, and the hints that this process has received."""

    def __init__(self, path: Path, version: Callable[[], Awaitable[int]], group: int | None = None) -> None:
        """Open nothing. `version` returns a number that changes when another connection writes to the file.

        Members of `group` may send datagrams, too.
        """
        self._folder = Path(f"{path}.wake")
        self._group = group
        self._version = version
        self._hints = WakeHints()
        self._last_version: dict[str, int] = {}
        self._socket: socket.socket | None = None
        self._name: Path | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    # ── sending ───────────────────────────────────────────────────────────────

    def send(self, queues: set[str], workers: set[str]) -> None:
        """Wake waiting workers, in this process and in others. Never blocks, never fails."""
        if not queues and not workers:
            return
        self._hints.add(queues, workers)
        datagram = _encode(Hint(sorted(queues), sorted(workers)))
        if len(datagram) > _MAX_DATAGRAM:
            datagram = _encode(Hint([], []))
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)  # noqa: FBT003 (the standard library's word)
            for target in self._other_sockets():
                try:
                    sender.sendto(datagram, str(target))
                except ConnectionRefusedError:
                    target.unlink(missing_ok=True)  # its process died without cleaning up
                except OSError:
                    continue  # full or gone: the receiver polls anyway

    def _other_sockets(self) -> Iterable[Path]:
        try:
            return [entry for entry in self._folder.iterdir() if entry != self._name]
        except FileNotFoundError:
            return []

    # ── waiting ───────────────────────────────────────────────────────────────

    async def wait(self, worker: str, queues: Iterable[str], seconds: float) -> bool:
        """Wait for a hint that is new to this worker, or for another connection's write; False on timeout."""
        self._listen()
        queues = tuple(queues)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        if worker not in self._last_version:
            await self.remember_version(worker)
        while not self._hints.has_new(worker, queues):
            # Compare with the version before this worker's last claim: a write since then, even before this
            # wait began, may be work that the claim did not see.
            if self._last_version[worker] != await self._version():
                break
            left = deadline - loop.time()
            if left <= 0:
                return False
            await self._hints.pause(min(left, POLL_SECONDS))
        await self.remember_version(worker)
        self._hints.mark_seen(worker, queues)
        return True

    async def remember_version(self, worker: str) -> None:
        """Remember the file's version, before a worker looks for work."""
        self._last_version[worker] = await self._version()

    def _listen(self) -> None:
        """Open this process's socket, for its owner alone or for a group.

        If that is impossible (a path beyond the 108 bytes of an address, a read-only folder), the poll every
        250 ms must do.
        """
        loop = asyncio.get_running_loop()
        if self._loop is loop and self._pid == os.getpid():
            return
        self.close()
        self._loop, self._pid = loop, os.getpid()
        self._hints.bind_loop(loop)
        name = self._folder / f"{self._pid}-{secrets.token_hex(4)}"
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        receiver.setblocking(False)  # noqa: FBT003 (the standard library's word)
        try:
            with suppress(FileExistsError):
                self._folder.mkdir(mode=0o700)
                self._set_mode(self._folder, 0o700)
            receiver.bind(str(name))
            self._set_mode(name, 0o600)  # until then the folder keeps others out; a umask is for all threads
        except OSError:
            receiver.close()
            return
        self._socket, self._name = receiver, name
        loop.add_reader(receiver, self._receive, receiver)

    def _set_mode(self, path: Path, mode: int) -> None:
        """Set the mode for the owner, and the same for the group if there is one."""
        if self._group is not None:
            os.chown(path, -1, self._group)
            mode |= mode >> 3
        path.chmod(mode)

    def _receive(self, receiver: socket.socket) -> None:
        with suppress(BlockingIOError):
            while True:
                datagram = receiver.recv(_MAX_DATAGRAM + 1)
                with suppress(msgspec.MsgspecError):
                    hint = _decode(datagram)
                    self._hints.add(hint.queues, hint.workers)

    def close(self) -> None:
        """Close and remove the socket; in a forked child only close it, because it is the parent's."""
        if self._socket is not None and self._loop is not None and self._name is not None:
            is_own = self._pid == os.getpid()
            if is_own and not self._loop.is_closed():
                self._loop.remove_reader(self._socket)
            self._socket.close()
            if is_own:
                self._name.unlink(missing_ok=True)
                with suppress(OSError):
                    self._folder.rmdir()  # fails unless this was the last socket
        self._socket = self._loop = self._name = None
        self._hints.bind_loop(None)
