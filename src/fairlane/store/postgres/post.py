"""Gather what is to be told, and send it soon: at once after a quiet while, then with growing gaps.

Belongs to one event loop. Knows neither hints nor a server: it has names to tell and somebody who tells them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, TypeAlias

SHORTEST_GAP: Final = 0.005
LONGEST_GAP: Final = 0.04
"""Seconds between two letters: doubled as long as there is always something to say."""

_PATIENCE: Final = 2.0

Teller: TypeAlias = Callable[[set[str], set[str]], Coroutine[Any, Any, None]]


class Post:
    """Queues and workers that others are to hear of; one letter is under way at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tell: Teller) -> None:
        self._loop = loop
        self._tell = tell
        self._queues: set[str] = set()
        self._workers: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._letter: asyncio.Task[None] | None = None
        self._gap = SHORTEST_GAP

    def add(self, queues: Iterable[str], workers: Iterable[str]) -> None:
        """Take something to tell. Never waits, never fails."""
        self._queues.update(queues)
        self._workers.update(workers)
        if self._timer is None:
            self._send()

    async def close(self) -> None:
        """Tell the rest; what cannot be told soon is lost."""
        self._gap = 0.0
        if self._timer is not None:
            self._timer.cancel()
        deadline = self._loop.time() + _PATIENCE
        while (letter := self._letter or self._send()) and self._loop.time() < deadline:
            await asyncio.wait([letter], timeout=_PATIENCE)
        if letter is not None:
            letter.cancel()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _send(self) -> asyncio.Task[None] | None:
        """Send what was gathered, unless a letter is still under way; look again when the gap is over."""
        if not self._queues and not self._workers:
            self._timer, self._gap = None, SHORTEST_GAP
            return None
        self._timer = self._loop.call_later(self._gap, self._send)
        self._gap = min(2 * self._gap, LONGEST_GAP)
        if self._letter is None:
            names = self._queues, self._workers
            self._queues, self._workers = set(), set()
            self._letter = self._loop.create_task(self._tell(*names))
            self._letter.add_done_callback(self._arrived)
        return self._letter

    def _arrived(self, _: asyncio.Task[None]) -> None:
        self._letter = None
