"""Wake waiting workers by NOTIFY on one channel per schema (S56).

A hint may be lost: who waits looks for itself once in a while. Hints go out after the commit, gathered, never
one for each enqueue: NOTIFY takes a lock that all databases of a server share.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, Protocol

import msgspec

from fairlane.store.hearing import Hearing
from fairlane.store.postgres.errors import DRIVER_ERRORS
from fairlane.store.postgres.post import Post

POLL_SECONDS: Final = 1.0
"""How long a worker may wait without looking for itself: a hint may be lost."""

PROBE_SECONDS: Final = 30.0
_LONGEST_LETTER: Final = 7_999  # bytes, by the server
_LONGEST_CHANNEL: Final = 63


class Line(Protocol):
    """The way to the server, as hints need it."""

    async def lend_ear(self) -> Any:
        """Give a connection for as long as it lives, to listen by; None where nothing could be heard."""

    async def take_ear(self, ear: Any) -> None:
        """Take it back."""

    async def say(self, channel: str, letter: str) -> None:
        """Tell everybody who listens; it may get lost."""


class Hint(msgspec.Struct, array_like=True):
    """What a letter says; without queues and workers it means everything. `sender` has heard it already."""

    queues: list[str] = []
    workers: list[str] = []
    sender: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Hint).decode


def channel_of(schema: str) -> str:
    """Name the channel of an installation.

    >>> channel_of("fairlane")
    'fairlane:fairlane'
    """
    name = f"fairlane:{schema}"
    if len(name.encode()) > _LONGEST_CHANNEL:
        name = "fairlane:" + hashlib.sha256(schema.encode()).hexdigest()[:32]
    return name


def letter_of(queues: Iterable[str], workers: Iterable[str] = (), sender: str = "") -> str:
    """Write a hint as the text of a NOTIFY.

    >>> letter_of(["mail"])
    '[["mail"],[],""]'
    """
    letter = _encode(Hint(sorted(queues), sorted(workers), sender))
    return (letter if len(letter) <= _LONGEST_LETTER else _encode(Hint(sender=sender))).decode()


class Wake:
    """The hints that this process has heard, and those it has to tell."""

    def __init__(self, schema: str, line: Line) -> None:
        """Listen and speak by this line, once there is something to hear or to say."""
        self._channel = channel_of(schema)
        self._line = line
        self._sender = secrets.token_hex(8)
        self._hearing = Hearing()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = os.getpid()
        self._ear: Any = None
        self._opening = asyncio.Lock()
        self._talking = asyncio.Lock()
        self._probe_at = 0.0
        self._post: Post | None = None

    # ── sending ───────────────────────────────────────────────────────────────

    def send(self, queues: Iterable[str], workers: Iterable[str]) -> None:
        """Tell everybody who waits, in this process at once, in others soon. Never waits, never fails."""
        hint = Hint(list(queues), list(workers))
        if not hint.queues and not hint.workers:
            return
        self._hearing.hear(hint.queues, hint.workers)
        with suppress(RuntimeError):  # without a loop nobody could send it
            self._post_of(asyncio.get_running_loop()).add(hint.queues, hint.workers)

    async def _tell(self, queues: set[str], workers: set[str]) -> None:
        """Speak by the connection that listens, where there is one: it has nothing else to do."""
        letter = letter_of(queues, workers, self._sender)
        ear = self._ear
        if ear is None or self._talking.locked():
            await self._line.say(self._channel, letter)
            return
        async with self._talking:
            with suppress(*DRIVER_ERRORS):  # a hint may be lost
                await ear.execute("SELECT pg_notify($1, $2)", self._channel, letter)

    # ── waiting ───────────────────────────────────────────────────────────────

    async def wait(self, worker: str, queues: Iterable[str], seconds: float) -> bool:
        """Wait for a hint that this worker has not seen yet; after `POLL_SECONDS` let it look anyway."""
        loop = asyncio.get_running_loop()
        self._post_of(loop)
        queues = tuple(queues)
        deadline = loop.time() + min(seconds, POLL_SECONDS)
        await self._attend()
        while not self._hearing.has_news(worker, queues):
            left = deadline - loop.time()
            if left <= 0:
                await self._probe()
                return seconds > POLL_SECONDS
            await self._hearing.pause(left)
            await self._attend()
        self._hearing.see(worker, queues)
        return True

    async def _attend(self) -> None:
        """Listen, if not yet or no longer. Nobody knows what was said meanwhile: it may be anything."""
        if self._ear is not None:
            return
        async with self._opening:
            if self._ear is not None:
                return
            ear = await self._line.lend_ear()
            if ear is None:
                return
            try:
                await ear.add_listener(self._channel, self._receive)
                ear.add_termination_listener(self._lose)
            except DRIVER_ERRORS:  # it was lost as it began: the poll suffices, and the next wait tries again
                _give_up(ear)
                return
            except BaseException:
                _give_up(ear)
                raise
            self._ear = ear
            self._probe_at = asyncio.get_running_loop().time() + PROBE_SECONDS
        self._hearing.hear()

    async def _probe(self) -> None:
        """Now and then ask whether anybody is still there: a network that is gone says nothing."""
        now = asyncio.get_running_loop().time()
        ear = self._ear
        if ear is None or now < self._probe_at or self._talking.locked():
            return
        self._probe_at = now + PROBE_SECONDS
        async with self._talking:
            try:
                await ear.execute("SELECT 1", timeout=POLL_SECONDS)
            except DRIVER_ERRORS:
                self._ear = None
                _give_up(ear)

    def _receive(self, _ear: Any, _pid: int, _channel: str, letter: object) -> None:
        with suppress(msgspec.MsgspecError):
            hint = _decode(str(letter))
            if hint.sender != self._sender:
                self._hearing.hear(hint.queues, hint.workers)

    def _lose(self, ear: Any) -> None:
        """Listen anew, at once if anybody waits. One that was given up before may end long after it."""
        if self._ear is ear:
            self._ear = None
            self._hearing.ring()

    # ── beginning and end ─────────────────────────────────────────────────────

    def _post_of(self, loop: asyncio.AbstractEventLoop) -> Post:
        """Belong to this loop and this process; what belonged to others is theirs."""
        if self._post is None or self._loop is not loop or self._pid != os.getpid():
            self._loop, self._pid = loop, os.getpid()
            self._ear = None
            self._hearing.belong(loop)
            self._opening, self._talking = asyncio.Lock(), asyncio.Lock()
            self._post = Post(loop, self._tell)
        return self._post

    async def close(self) -> None:
        """Send what is to be said, and listen no more."""
        if self._loop is not asyncio.get_running_loop() or self._pid != os.getpid():
            return
        if self._post is not None:
            await self._post.close()
        ear, self._ear = self._ear, None
        if ear is not None:
            with suppress(*DRIVER_ERRORS):
                ear.remove_termination_listener(self._lose)
                await ear.remove_listener(self._channel, self._receive)
                await self._line.take_ear(ear)


def _give_up(ear: Any) -> None:
    """End a connection. One whose server has ended it is the pool's again, and says so."""
    with suppress(*DRIVER_ERRORS):
        ear.terminate()
