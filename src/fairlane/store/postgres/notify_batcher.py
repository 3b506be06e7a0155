"""Batch NOTIFYs: the first goes out at once, then one at a time with growing gaps.

Belongs to one event loop. Knows neither hints nor a server, only names and a coroutine that sends them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, TypeAlias

MIN_GAP: Final = 0.005
MAX_GAP: Final = 0.04
"""Seconds between two NOTIFYs: doubled as long as there is always something to send."""

_CLOSE_TIMEOUT: Final = 2.0

Send: TypeAlias = Callable[[set[str], set[str]], Coroutine[Any, Any, None]]


class NotifyBatcher:
    """Names of queues and workers to notify; one NOTIFY is under way at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, send: Send) -> None:
        self._loop = loop
        self._send = send
        self._queues: set[str] = set()
        self._workers: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        self._gap = MIN_GAP

    def add(self, queues: Iterable[str], workers: Iterable[str]) -> None:
        """Add names to notify. Never waits, never fails."""
        self._queues.update(queues)
        self._workers.update(workers)
        if self._timer is None:
            self._flush()

    async def close(self) -> None:
        """Send the rest; what cannot be sent soon is lost."""
        self._gap = 0.0
        if self._timer is not None:
            self._timer.cancel()
        deadline = self._loop.time() + _CLOSE_TIMEOUT
        while (sending := self._sending or self._flush()) and self._loop.time() < deadline:
            await asyncio.wait([sending], timeout=_CLOSE_TIMEOUT)
        if sending is not None:
            sending.cancel()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _flush(self) -> asyncio.Task[None] | None:
        """Send what was added, unless a NOTIFY is still under way; look again when the gap is over."""
        if not self._queues and not self._workers:
            self._timer, self._gap = None, MIN_GAP
            return None
        self._timer = self._loop.call_later(self._gap, self._flush)
        self._gap = min(2 * self._gap, MAX_GAP)
        if self._sending is None:
            names = self._queues, self._workers
            self._queues, self._workers = set(), set()
            self._sending = self._loop.create_task(self._send(*names))
            self._sending.add_done_callback(self._sent)
        return self._sending

    def _sent(self, _: asyncio.Task[None]) -> None:
        self._sending = None
