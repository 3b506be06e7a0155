"""SAQ on Redis and on PostgreSQL: coroutines, no results kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from saq import Queue

from benchmarks.peers.protocol import Job, PeerDriver, slots, url, work_async

_AT_ONCE: Final = 200
_SLOTS: Final = slots(50)
_FORGET: Final = -1
"""A time to live that keeps nothing of a finished job."""

queue = Queue.from_url(url())


async def job(_: Any, *, number: int, millis: int) -> None:
    """Leave a mark."""
    await work_async(number, millis)


settings = {"queue": queue, "functions": [("job", job)], "concurrency": _SLOTS}


class Peer(PeerDriver):
    """There is no bulk enqueue: many are under way at once."""

    packages = ("saq",)

    def settings(self) -> str:
        """Say how many at once."""
        return f"concurrency {_SLOTS}, no results"

    def worker(self) -> Sequence[str]:
        """Be its own worker."""
        return ["saq", "benchmarks.peers.drivers.saq.settings", "--quiet"]

    async def prepare(self) -> str | None:
        """Connecting makes the tables."""
        await queue.connect()
        await queue.disconnect()
        return None

    async def open(self) -> None:
        """Connect."""
        await queue.connect()

    async def enqueue(self, jobs: Sequence[Job]) -> None:
        """Enqueue many at a time."""
        for start in range(0, len(jobs), _AT_ONCE):
            await asyncio.gather(*map(self.one, jobs[start : start + _AT_ONCE]))

    async def one(self, job: Job) -> None:
        """Enqueue one."""
        await queue.enqueue("job", number=job.number, millis=job.millis, ttl=_FORGET)
