"""Wake waiting workers by NOTIFY on one channel per schema (S56).

A hint may be lost: who waits looks for itself once in a while. Hints go out after the commit, at once after a
quiet while and then gathered, never one for each enqueue: NOTIFY takes a lock that all databases share.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Final

import asyncpg
import msgspec

SHORTEST_GAP: Final = 0.005
LONGEST_GAP: Final = 0.04
"""Seconds between two letters of one process: doubled as long as there is always something to say."""

POLL_SECONDS: Final = 1.0
"""How long a worker may wait without looking for itself: a hint may be lost."""

_LONGEST_LETTER: Final = 7_999  # bytes, by the server
_LONGEST_CHANNEL: Final = 63

Listening = Callable[[], Awaitable[asyncpg.Connection]]
Saying = Callable[[str, str], Coroutine[Any, Any, None]]


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

    def __init__(self, schema: str, listen: Listening | None, say: Saying) -> None:
        """`listen` opens a connection for hints alone; None where a pooler would not let it hear any."""
        self._channel = channel_of(schema)
        self._listen = listen
        self._say = say
        self._sender = secrets.token_hex(8)
        self._heard: Counter[str] = Counter()
        self._seen: dict[str, Counter[str]] = {}
        self._changed: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = os.getpid()
        self._ear: asyncpg.Connection | None = None
        self._opening: asyncio.Lock | None = None
        self._outbox: tuple[set[str], set[str]] = (set(), set())
        self._timer: asyncio.TimerHandle | None = None
        self._gap = SHORTEST_GAP
        self._posts: set[asyncio.Task[None]] = set()

    # ── sending ───────────────────────────────────────────────────────────────

    def send(self, queues: Iterable[str], workers: Iterable[str]) -> None:
        """Tell everybody who waits, in this process at once, in others soon. Never waits, never fails."""
        hint = Hint(list(queues), list(workers))
        if not hint.queues and not hint.workers:
            return
        self._hear(hint)
        self._outbox[0].update(hint.queues)
        self._outbox[1].update(hint.workers)
        with suppress(RuntimeError):  # without a loop nobody could send it
            self._settle_in(asyncio.get_running_loop())
            if self._timer is None:
                self._post()

    def _post(self) -> None:
        """Send what is in the outbox, and look again when the gap is over."""
        (queues, workers), self._outbox = self._outbox, (set(), set())
        loop = asyncio.get_running_loop()
        if not queues and not workers:
            self._timer, self._gap = None, SHORTEST_GAP
            return
        post = loop.create_task(self._say(self._channel, letter_of(queues, workers, self._sender)))
        self._posts.add(post)
        post.add_done_callback(self._posts.discard)
        self._timer = loop.call_later(self._gap, self._post)
        self._gap = min(2 * self._gap, LONGEST_GAP)

    # ── waiting ───────────────────────────────────────────────────────────────

    async def wait(self, worker: str, queues: Iterable[str], seconds: float) -> bool:
        """Wait for a hint that this worker has not seen yet; after `POLL_SECONDS` let it look anyway."""
        loop = asyncio.get_running_loop()
        self._settle_in(loop)
        names = [f"worker {worker}", "everything", *(f"queue {queue}" for queue in queues)]
        seen = self._seen.setdefault(worker, Counter())
        deadline = loop.time() + min(seconds, POLL_SECONDS)
        await self._attend()
        while not any(self._heard[name] != seen[name] for name in names):
            left = deadline - loop.time()
            if left <= 0:
                return seconds > POLL_SECONDS
            await self._pause(left)
            await self._attend()
        for name in names:
            seen[name] = self._heard[name]
        return True

    async def _attend(self) -> None:
        """Listen, if not yet or no longer. Nobody knows what was said meanwhile: it may be anything."""
        if self._listen is None or self._is_listening():
            return
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._is_listening():
                return
            ear = await self._listen()
            try:
                await ear.add_listener(self._channel, self._receive)
            except BaseException:
                ear.terminate()
                raise
            ear.add_termination_listener(self._lose)
            self._ear = ear
        self._hear(Hint())

    def _is_listening(self) -> bool:
        return self._ear is not None and not self._ear.is_closed()

    async def _pause(self, seconds: float) -> None:
        if self._changed is None:
            self._changed = asyncio.Event()
        changed = self._changed
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await changed.wait()

    def _receive(self, _ear: Any, _pid: int, _channel: str, letter: object) -> None:
        with suppress(msgspec.MsgspecError):
            hint = _decode(str(letter))
            if hint.sender != self._sender:
                self._hear(hint)

    def _lose(self, ear: Any) -> None:
        if ear is self._ear:
            self._ear = None
            self._ring()

    def _hear(self, hint: Hint) -> None:
        names = [f"queue {queue}" for queue in hint.queues] + [f"worker {worker}" for worker in hint.workers]
        self._heard.update(names or ["everything"])
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                self._loop.call_soon_threadsafe(self._ring)

    def _ring(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set()

    # ── beginning and end ─────────────────────────────────────────────────────

    def _settle_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """Belong to this loop and this process; what belonged to others is theirs."""
        if self._loop is loop and self._pid == os.getpid():
            return
        self._loop, self._pid = loop, os.getpid()
        self._ear = self._opening = self._changed = self._timer = None
        self._gap = SHORTEST_GAP
        self._posts = set()

    async def close(self) -> None:
        """Send what is to be said, and listen no more."""
        if self._loop is not asyncio.get_running_loop() or self._pid != os.getpid():
            return
        if self._timer is not None:
            self._timer.cancel()
            self._post()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        ear, self._ear = self._ear, None
        if ear is not None:
            ear.remove_termination_listener(self._lose)
            with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                await ear.close(timeout=1)
        if self._posts:
            await asyncio.wait(self._posts)
