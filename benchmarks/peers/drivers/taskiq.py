"""Taskiq on Redis streams: coroutines, uvloop, acknowledged when done."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from taskiq_redis import RedisStreamBroker

from benchmarks.peers.protocol import Job, PeerDriver, slots, url, work_async

_AT_ONCE: Final = 200
_SLOTS: Final = slots(100)
_PREFETCH: Final = 100

broker = RedisStreamBroker(url())


@broker.task(task_name="job")
async def job(number: int, millis: int) -> None:
    """Leave a mark."""
    await work_async(number, millis)


class Peer(PeerDriver):
    """There is no bulk enqueue: many are under way at once."""

    packages = ("taskiq", "taskiq-redis", "uvloop")

    def settings(self) -> str:
        """Say how many at once, and ahead."""
        return f"streams, 1 process, {_SLOTS} at once, prefetch {_PREFETCH}, uvloop"

    def worker(self) -> Sequence[str]:
        """Be its own worker, with one process for the jobs beside the one that watches it."""
        sizes = [f"--max-async-tasks={_SLOTS}", f"--max-prefetch={_PREFETCH}", "--log-level=ERROR"]
        return ["taskiq", "worker", "benchmarks.peers.drivers.taskiq:broker", "-w1", *sizes]

    async def prepare(self) -> str | None:
        """Make the group of readers, which sees only what comes after it."""
        await broker.startup()
        await broker.shutdown()
        return None

    async def open(self) -> None:
        """Connect."""
        await broker.startup()

    async def enqueue(self, jobs: Sequence[Job]) -> None:
        """Send many at a time."""
        for start in range(0, len(jobs), _AT_ONCE):
            await asyncio.gather(*map(self.one, jobs[start : start + _AT_ONCE]))

    async def one(self, job_: Job) -> None:
        """Send one."""
        await job.kiq(job_.number, job_.millis)
