"""What a process has heard of queues and workers, and who of its workers has not looked since (S56).

Belongs to one event loop at a time; hints may come from any thread. Knows neither sockets nor servers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress


class Hearing:
    """Hints as they come in, and a bell for those who wait. Hints without a name mean everything."""

    def __init__(self) -> None:
        """Have heard nothing yet."""
        self._heard: Counter[str] = Counter()
        self._seen: dict[str, Counter[str]] = {}
        self._changed: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def belong(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Ring in this loop from now on; who waits in another waits in vain."""
        self._loop, self._changed = loop, None

    def hear(self, queues: Iterable[str] = (), workers: Iterable[str] = ()) -> None:
        """Take a hint, from whatever thread."""
        names = [f"queue {queue}" for queue in queues] + [f"worker {worker}" for worker in workers]
        self._heard.update(names or ["everything"])
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                self._loop.call_soon_threadsafe(self.ring)

    def has_news(self, worker: str, queues: Iterable[str]) -> bool:
        """Whether there was a hint for this worker that it has not seen."""
        seen = self._seen.setdefault(worker, Counter())
        return any(self._heard[name] != seen[name] for name in _names(worker, queues))

    def see(self, worker: str, queues: Iterable[str]) -> None:
        """Note that a worker looks now, because of all that was heard so far."""
        seen = self._seen.setdefault(worker, Counter())
        for name in _names(worker, queues):
            seen[name] = self._heard[name]

    async def pause(self, seconds: float) -> None:
        """Wait for the bell, so long at most."""
        if self._changed is None:
            self._changed = asyncio.Event()
        changed = self._changed
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await changed.wait()

    def ring(self) -> None:
        """Let those who wait look around; for the loop itself to call."""
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set()


def _names(worker: str, queues: Iterable[str]) -> list[str]:
    return [f"worker {worker}", "everything", *(f"queue {queue}" for queue in queues)]
