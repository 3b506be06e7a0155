"""Wake up waiting workers by NOTIFY, on one channel per schema (S56).

A hint may be lost, so a waiting worker also polls once in a while. Hints go out after the commit and in
batches, never one for each enqueue: NOTIFY takes a lock that all databases of a server share.
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

from fairlane.store.postgres.errors import DRIVER_ERRORS
from fairlane.store.postgres.notify_batcher import NotifyBatcher
from fairlane.store.wake_hints import WakeHints

POLL_SECONDS: Final = 1.0
"""How long a worker waits at most before it looks for itself: a hint may be lost."""

PROBE_SECONDS: Final = 30.0
_MAX_PAYLOAD: Final = 7_999  # bytes, by the server
_MAX_CHANNEL: Final = 63


class NotifyConnection(Protocol):
    """The server as hints need it."""

    async def lend_listener(self) -> Any:
        """Lend a connection to listen on; None where listening is impossible."""

    async def return_listener(self, listener: Any) -> None:
        """Take it back."""

    async def notify(self, channel: str, payload: str) -> None:
        """Send a NOTIFY; it may get lost."""


class Hint(msgspec.Struct, array_like=True):
    """The payload of a NOTIFY. Without queues and workers it means everything. `sender` knows it already."""

    queues: list[str] = []
    workers: list[str] = []
    sender: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Hint).decode


def channel_of(schema: str) -> str:
    """Return the channel of an installation.

    >>> channel_of("fairlane")
    'fairlane:fairlane'
    """
    name = f"fairlane:{schema}"
    if len(name.encode()) > _MAX_CHANNEL:
        name = "fairlane:" + hashlib.sha256(schema.encode()).hexdigest()[:32]
    return name


def encode_hint(queues: Iterable[str], workers: Iterable[str] = (), sender: str = "") -> str:
    """Return a hint as the payload of a NOTIFY.

    >>> encode_hint(["mail"])
    '[["mail"],[],""]'
    """
    payload = _encode(Hint(sorted(queues), sorted(workers), sender))
    return (payload if len(payload) <= _MAX_PAYLOAD else _encode(Hint(sender=sender))).decode()


class Wake:
    """The hints that this process has received, and those it has to send."""

    def __init__(self, schema: str, connection: NotifyConnection) -> None:
        """Use no connection yet: the first hint or wait does."""
        self._channel = channel_of(schema)
        self._connection = connection
        self._sender = secrets.token_hex(8)
        self._hints = WakeHints()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = os.getpid()
        self._listener: Any = None
        self._opening = asyncio.Lock()
        self._sending = asyncio.Lock()
        self._probe_at = 0.0
        self._batcher: NotifyBatcher | None = None

    # ── sending ───────────────────────────────────────────────────────────────

    def send(self, queues: Iterable[str], workers: Iterable[str]) -> None:
        """Wake everybody who waits, in this process at once, in others soon. Never waits, never fails."""
        hint = Hint(list(queues), list(workers))
        if not hint.queues and not hint.workers:
            return
        self._hints.add(hint.queues, hint.workers)
        with suppress(RuntimeError):  # without a running loop nothing can be sent
            self._batcher_of(asyncio.get_running_loop()).add(hint.queues, hint.workers)

    async def _notify(self, queues: set[str], workers: set[str]) -> None:
        """Send by the connection that listens, if there is one: it has nothing else to do."""
        payload = encode_hint(queues, workers, self._sender)
        listener = self._listener
        if listener is None or self._sending.locked():
            await self._connection.notify(self._channel, payload)
            return
        async with self._sending:
            with suppress(*DRIVER_ERRORS):  # a hint may be lost
                await listener.execute("SELECT pg_notify($1, $2)", self._channel, payload)

    # ── waiting ───────────────────────────────────────────────────────────────

    async def wait(self, worker: str, queues: Iterable[str], seconds: float) -> bool:
        """Wait for a hint that this worker has not seen yet; after `POLL_SECONDS` let it poll anyway."""
        loop = asyncio.get_running_loop()
        self._batcher_of(loop)
        queues = tuple(queues)
        deadline = loop.time() + min(seconds, POLL_SECONDS)
        await self._listen()
        while not self._hints.has_new(worker, queues):
            left = deadline - loop.time()
            if left <= 0:
                await self._probe()
                return seconds > POLL_SECONDS
            await self._hints.pause(left)
            await self._listen()
        self._hints.mark_seen(worker, queues)
        return True

    async def _listen(self) -> None:
        """Listen, if not yet or no longer. Hints may have been missed: that counts as one for everything."""
        if self._listener is not None:
            return
        async with self._opening:
            if self._listener is not None:
                return
            listener = await self._connection.lend_listener()
            if listener is None:
                return
            try:
                await listener.add_listener(self._channel, self._on_notify)
                listener.add_termination_listener(self._on_lost)
            except DRIVER_ERRORS:  # lost as it began: polling suffices, and the next wait tries again
                _cut(listener)
                return
            except BaseException:
                _cut(listener)
                raise
            self._listener = listener
            self._probe_at = asyncio.get_running_loop().time() + PROBE_SECONDS
        self._hints.add()

    async def _probe(self) -> None:
        """Check now and then that the connection lives: a network that is gone closes nothing."""
        now = asyncio.get_running_loop().time()
        listener = self._listener
        if listener is None or now < self._probe_at or self._sending.locked():
            return
        self._probe_at = now + PROBE_SECONDS
        async with self._sending:
            try:
                await listener.execute("SELECT 1", timeout=POLL_SECONDS)
            except DRIVER_ERRORS:
                self._listener = None
                _cut(listener)

    def _on_notify(self, _listener: Any, _pid: int, _channel: str, payload: object) -> None:
        with suppress(msgspec.MsgspecError):
            hint = _decode(str(payload))
            if hint.sender != self._sender:
                self._hints.add(hint.queues, hint.workers)

    def _on_lost(self, listener: Any) -> None:
        """Listen anew, at once if anybody waits. A connection that was cut earlier may end much later."""
        if self._listener is listener:
            self._listener = None
            self._hints.wake_waiters()

    # ── beginning and end ─────────────────────────────────────────────────────

    def _batcher_of(self, loop: asyncio.AbstractEventLoop) -> NotifyBatcher:
        """Return the batcher of this loop and process; begin anew in another loop or after a fork."""
        if self._batcher is None or self._loop is not loop or self._pid != os.getpid():
            self._loop, self._pid = loop, os.getpid()
            self._listener = None
            self._hints.bind_loop(loop)
            self._opening, self._sending = asyncio.Lock(), asyncio.Lock()
            self._batcher = NotifyBatcher(loop, self._notify)
        return self._batcher

    async def close(self) -> None:
        """Send pending hints and stop listening."""
        if self._loop is not asyncio.get_running_loop() or self._pid != os.getpid():
            return
        if self._batcher is not None:
            await self._batcher.close()
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(*DRIVER_ERRORS):
                listener.remove_termination_listener(self._on_lost)
                await listener.remove_listener(self._channel, self._on_notify)
                await self._connection.return_listener(listener)


def _cut(listener: Any) -> None:
    """Cut a connection. One that the server has ended is back in the pool, and the driver says so."""
    with suppress(*DRIVER_ERRORS):
        listener.terminate()
