"""Celery on Redis: a pool of threads, no results kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from celery import Celery

from benchmarks.peers.protocol import Job, PeerDriver, slots, url, work

_THREADS: Final = slots(10)
_PREFETCH: Final = 100

app = Celery("peers", broker=url())
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=_PREFETCH)


@app.task(name="job")
def job(number: int, millis: int) -> None:
    """Leave a mark."""
    work(number, millis)


class Peer(PeerDriver):
    """There is no bulk enqueue: jobs go in one by one, over one connection."""

    packages = ("celery", "kombu", "redis")

    def settings(self) -> str:
        """Say how many threads, and how much they fetch ahead."""
        return f"{_THREADS} threads, prefetch × {_PREFETCH}, no results"

    def worker(self) -> Sequence[str]:
        """Be its own worker, without what only several of them need."""
        words = ["-P", "threads", "-c", str(_THREADS), "-l", "ERROR", "--without-gossip", "--without-mingle"]
        return ["celery", "-A", "benchmarks.peers.drivers.celery", "worker", *words]

    async def enqueue(self, jobs: Sequence[Job]) -> None:
        """Send one after the other through one producer."""
        with app.producer_pool.acquire(block=True) as producer:
            for one in jobs:
                job.apply_async((one.number, one.millis), producer=producer)

    async def one(self, job_: Job) -> None:
        """Send one."""
        job.delay(job_.number, job_.millis)
