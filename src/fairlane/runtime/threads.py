"""Run plain functions in threads of their own, so that the event loop goes on. Knows no job.

Threads are daemons: one that never ends must not keep the process from its end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue


class Ticket:
    """One function on its way through a thread."""

    __slots__ = ("is_abandoned", "is_done", "work")

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.is_done = False
        self.is_abandoned = False


class Threads:
    """As many threads as functions run at once, started when needed and kept. Called from one thread only."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[Ticket | None] = SimpleQueue()
        # Two threads may decide at once what becomes of one ticket.
        self._ending = threading.Condition()
        self._threads = 0
        self._busy = 0
        self._started = 0

    def submit(self, work: Callable[[], None]) -> Ticket:
        """Run a function that raises nothing, at once: there is always a thread for it."""
        ticket = Ticket(work)
        if self._busy >= self._threads:
            name = f"{self._name}-{self._started + 1}"
            # Counted once it is there: the system may refuse another thread.
            threading.Thread(target=self._live, name=name, daemon=True).start()
            self._threads += 1
            self._started += 1
        self._busy += 1
        self._queue.put(ticket)
        return ticket

    def ended(self, ticket: Ticket) -> None:
        """Hear that a function has ended; its thread is free for another."""
        if not ticket.is_abandoned:
            self._busy -= 1

    def abandon(self, ticket: Ticket) -> None:
        """Count on the thread no more; should its function ever end, the thread ends with it."""
        with self._ending:
            ticket.is_abandoned = True
            if not ticket.is_done:
                self._threads -= 1
        self._busy -= 1

    def close(self) -> None:
        """Let the threads end as soon as they have nothing to do."""
        for _ in range(self._threads):
            self._queue.put(None)

    def _live(self) -> None:
        while (ticket := self._queue.get()) is not None:
            ticket.work()
            with self._ending:
                ticket.is_done = True
                if ticket.is_abandoned:
                    return
