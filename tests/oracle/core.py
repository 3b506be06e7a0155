"""What the oracle's facets share: the books, the clock, the hints, and moves that several verbs make."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.moves import hurried
from tests.oracle.books import Books
from tests.oracle.clock import DrivenClock
from tests.oracle.waking import queues_at_gate


class Core:
    """One installation in memory."""

    def __init__(self, clock: DrivenClock) -> None:
        """Begin with empty books."""
        self.clock = clock
        self.books = Books()
        self._hints: Counter[str] = Counter()
        self._seen: dict[str, Counter[str]] = {}
        self._changed = asyncio.Event()

    def now(self) -> Instant:
        """Read the store's own clock."""
        return self.clock.now()

    # ── hints ─────────────────────────────────────────────────────────────────

    def hint(self, queues: Iterable[str] = (), workers: Iterable[str] = ()) -> None:
        """Leave a hint for whoever waits for these."""
        self._hints.update([f"queue {queue}" for queue in queues])
        self._hints.update([f"worker {worker}" for worker in workers])
        self._changed.set()
        self._changed = asyncio.Event()

    async def await_hint(self, worker: str, queues: Iterable[str], seconds: float) -> bool:
        """Wait for a hint that this worker has not seen yet."""
        names = [f"worker {worker}", *(f"queue {queue}" for queue in queues)]
        seen = self._seen.setdefault(worker, Counter())
        try:
            async with asyncio.timeout(seconds):
                while all(self._hints[name] == seen[name] for name in names):
                    await self._changed.wait()
        except TimeoutError:
            return False
        seen.update({name: self._hints[name] - seen[name] for name in names})
        return True

    # ── moves ─────────────────────────────────────────────────────────────────

    def make_ready(self, job: JobRecord) -> JobRecord:
        """Make a delayed job due now."""
        self.hint({job.queue})
        return self.books.save(hurried(job, self.now()))

    def end_attempt(self, after: JobRecord) -> JobRecord:
        """Take a job out of its claim: history, counters, gate, limits."""
        books = self.books
        holding = books.holdings.pop(after.id)
        books.save(after)
        flow = (after.queue, after.tenant)
        parked = books.clockwork[flow].parked
        if parked is not None and parked.reason == "running_limit":
            books.wake(flow)
        if holding.gate is not None:
            books.gate_used[holding.gate] -= 1
            if not books.gate_used[holding.gate]:
                del books.gate_used[holding.gate]
            self.hint(queues_at_gate(books, holding.gate))
        self.hint({after.queue})
        return after
