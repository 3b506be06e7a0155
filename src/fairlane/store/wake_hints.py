"""Wake-up hints that a process has received, and which of its workers have not seen them (S56).

Belongs to one event loop at a time; hints may come from any thread. Knows no sockets and no servers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress


class WakeHints:
    """Counts hints by queue and worker, and wakes those who wait. A hint without a name is for everybody."""

    def __init__(self) -> None:
        """Start without hints."""
        self._received: Counter[str] = Counter()
        self._seen: dict[str, Counter[str]] = {}
        self._changed: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def bind_loop(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Wake waiters on this loop from now on. Waiters on another loop are not woken."""
        self._loop, self._changed = loop, None

    def add(self, queues: Iterable[str] = (), workers: Iterable[str] = ()) -> None:
        """Add a hint, from any thread."""
        names = [f"queue {queue}" for queue in queues] + [f"worker {worker}" for worker in workers]
        self._received.update(names or ["everything"])
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                self._loop.call_soon_threadsafe(self.wake_waiters)

    def has_new(self, worker: str, queues: Iterable[str]) -> bool:
        """Whether there is a hint for this worker that it has not seen."""
        seen = self._seen.setdefault(worker, Counter())
        return any(self._received[name] != seen[name] for name in _names(worker, queues))

    def mark_seen(self, worker: str, queues: Iterable[str]) -> None:
        """Mark all hints for a worker as seen."""
        seen = self._seen.setdefault(worker, Counter())
        for name in _names(worker, queues):
            seen[name] = self._received[name]

    async def pause(self, seconds: float) -> None:
        """Wait for any hint, at most this long."""
        if self._changed is None:
            self._changed = asyncio.Event()
        changed = self._changed
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await changed.wait()

    def wake_waiters(self) -> None:
        """Wake all waiters; to be called in the loop."""
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set()


def _names(worker: str, queues: Iterable[str]) -> list[str]:
    return [f"worker {worker}", "everything", *(f"queue {queue}" for queue in queues)]
