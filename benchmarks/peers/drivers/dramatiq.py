"""Dramatiq on Redis: one process of threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.peers.protocol import Job, PeerDriver, slots, url, work

_THREADS: Final = slots(8)

dramatiq.set_broker(RedisBroker(url=url()))


@dramatiq.actor
def job(number: int, millis: int) -> None:
    """Leave a mark."""
    work(number, millis)


class Peer(PeerDriver):
    """There is no bulk enqueue: jobs go in one by one."""

    packages = ("dramatiq", "redis")

    def settings(self) -> str:
        """Say how many threads."""
        return f"1 process × {_THREADS} threads"

    def worker(self) -> Sequence[str]:
        """Be its own worker."""
        return ["dramatiq", "benchmarks.peers.drivers.dramatiq", "-p1", f"-t{_THREADS}"]

    async def enqueue(self, jobs: Sequence[Job]) -> None:
        """Send one after the other."""
        for one in jobs:
            job.send(one.number, one.millis)

    async def one(self, job_: Job) -> None:
        """Send one."""
        job.send(job_.number, job_.millis)
