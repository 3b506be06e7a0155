"""Wake waiting workers by a datagram to a Unix socket of theirs beside the file (S56).

A hint may be lost between processes: a waiting worker also looks, every 250 ms, whether anybody else has
written to the file. What its own process writes is told it without a datagram.
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

from fairlane.store.hearing import Hearing

POLL_SECONDS: Final = 0.25
_LONGEST: Final = 60_000


class Hint(msgspec.Struct, array_like=True):
    """What a datagram says; empty means everything."""

    queues: list[str]
    workers: list[str]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Hint).decode


class Wake:
    """The sockets of one file, and the hints that this process has heard."""

    def __init__(self, path: Path, version: Callable[[], Awaitable[int]], group: int | None = None) -> None:
        """`version` tells a number that changes when somebody else writes to the file; `group` may wake."""
        self._folder = Path(f"{path}.wake")
        self._group = group
        self._version = version
        self._hearing = Hearing()
        self._looked: dict[str, int] = {}
        self._socket: socket.socket | None = None
        self._name: Path | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    # ── sending ───────────────────────────────────────────────────────────────

    def send(self, queues: set[str], workers: set[str]) -> None:
        """Tell everybody who waits, in this process and in others. Never blocks, never fails."""
        if not queues and not workers:
            return
        self._hearing.hear(queues, workers)
        letter = _encode(Hint(sorted(queues), sorted(workers)))
        if len(letter) > _LONGEST:
            letter = _encode(Hint([], []))
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)  # noqa: FBT003 (the standard library's word)
            for target in self._others():
                try:
                    sender.sendto(letter, str(target))
                except ConnectionRefusedError:
                    target.unlink(missing_ok=True)  # its owner died without cleaning up
                except OSError:
                    continue  # full or gone: a hint may be lost

    def _others(self) -> Iterable[Path]:
        try:
            return [entry for entry in self._folder.iterdir() if entry != self._name]
        except FileNotFoundError:
            return []

    # ── waiting ───────────────────────────────────────────────────────────────

    async def wait(self, worker: str, queues: Iterable[str], seconds: float) -> bool:
        """Wait for a hint that this worker has not seen yet, or for another's write, at most so long."""
        self._listen()
        queues = tuple(queues)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        if worker not in self._looked:
            await self.look(worker)
        while not self._hearing.has_news(worker, queues):
            # Compared with what was there when this worker looked last: whatever was written since, be it
            # before this wait began, may be work that its last claim did not see.
            if self._looked[worker] != await self._version():
                break
            left = deadline - loop.time()
            if left <= 0:
                return False
            await self._hearing.pause(min(left, POLL_SECONDS))
        await self.look(worker)
        self._hearing.see(worker, queues)
        return True

    async def look(self, worker: str) -> None:
        """Remember how the file is now, as a worker is about to look for work in it."""
        self._looked[worker] = await self._version()

    def _listen(self) -> None:
        """Open this process's socket, for its owner alone or for a group.

        Where there can be none (a path beyond the 108 bytes of an address, a folder that is read only), the
        look every 250 ms must do.
        """
        loop = asyncio.get_running_loop()
        if self._loop is loop and self._pid == os.getpid():
            return
        self.close()
        self._loop, self._pid = loop, os.getpid()
        self._hearing.belong(loop)
        name = self._folder / f"{self._pid}-{secrets.token_hex(4)}"
        ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        ear.setblocking(False)  # noqa: FBT003 (the standard library's word)
        try:
            with suppress(FileExistsError):
                self._folder.mkdir(mode=0o700)
                self._admit(self._folder, 0o700)
            ear.bind(str(name))
            self._admit(name, 0o600)  # the folder keeps others out until then; a umask holds for all threads
        except OSError:
            ear.close()
            return
        self._socket, self._name = ear, name
        loop.add_reader(ear, self._receive, ear)

    def _admit(self, path: Path, mode: int) -> None:
        """Let the owner in, and the group as far as the owner if there is one."""
        if self._group is not None:
            os.chown(path, -1, self._group)
            mode |= mode >> 3
        path.chmod(mode)

    def _receive(self, receiver: socket.socket) -> None:
        with suppress(BlockingIOError):
            while True:
                letter = receiver.recv(_LONGEST + 1)
                with suppress(msgspec.MsgspecError):
                    hint = _decode(letter)
                    self._hearing.hear(hint.queues, hint.workers)

    def close(self) -> None:
        """Take the socket away; in a forked child, only let go of it: it is the parent's."""
        if self._socket is not None and self._loop is not None and self._name is not None:
            is_own = self._pid == os.getpid()
            if is_own and not self._loop.is_closed():
                self._loop.remove_reader(self._socket)
            self._socket.close()
            if is_own:
                self._name.unlink(missing_ok=True)
                with suppress(OSError):
                    self._folder.rmdir()  # the last one out
        self._socket = self._loop = self._name = None
        self._hearing.belong(None)
