"""Run plain functions in threads, so that the event loop goes on. Knows no job.

The threads are daemons: one that never ends must not keep the process alive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue


class ThreadCall:
    """One function on its way through a thread."""

    __slots__ = ("is_abandoned", "is_done", "work")

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.is_done = False
        self.is_abandoned = False


class ThreadPool:
    """As many threads as functions run at once, started on demand and reused. Called from one thread only."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[ThreadCall | None] = SimpleQueue()
        # The caller and a pool's thread may decide at once what becomes of a call.
        self._ending = threading.Condition()
        self._threads = 0
        self._busy = 0
        self._started = 0

    def submit(self, work: Callable[[], None]) -> ThreadCall:
        """Run a function, which must not raise, at once: there is always a thread for it."""
        call = ThreadCall(work)
        if self._busy >= self._threads:
            name = f"{self._name}-{self._started + 1}"
            # Count it after the start: the system may refuse another thread.
            threading.Thread(target=self._live, name=name, daemon=True).start()
            self._threads += 1
            self._started += 1
        self._busy += 1
        self._queue.put(call)
        return call

    def ended(self, call: ThreadCall) -> None:
        """Note that a call has ended: its thread is free for another."""
        if not call.is_abandoned:
            self._busy -= 1

    def abandon(self, call: ThreadCall) -> None:
        """Stop counting on the thread of a call; if the call ever ends, the thread ends with it."""
        if call.is_abandoned:
            return
        with self._ending:
            call.is_abandoned = True
            if not call.is_done:
                self._threads -= 1
        self._busy -= 1

    def close(self) -> None:
        """Let the threads end as soon as they are idle."""
        for _ in range(self._threads):
            self._queue.put(None)

    def _live(self) -> None:
        while (call := self._queue.get()) is not None:
            call.work()
            with self._ending:
                call.is_done = True
                if call.is_abandoned:
                    return
