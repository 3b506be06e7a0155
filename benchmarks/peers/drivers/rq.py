"""RQ on Redis: the worker that does not fork for each job, no results kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from redis import Redis
from rq import Queue

from benchmarks.peers.protocol import Job, PeerDriver, url, work

_MANY: Final = 500
_KEEP: Final = 0
_NAME: Final = "benchmarks.peers.protocol.work"


class Peer(PeerDriver):
    """Jobs go in by the pipeline."""

    packages = ("rq", "redis")

    def settings(self) -> str:
        """One job at a time is all that this worker does."""
        return "SimpleWorker (no fork), one job at a time, no results"

    def worker(self) -> Sequence[str]:
        """Be its own worker."""
        return ["rq", "worker", "-u", url(), "-w", "rq.worker.SimpleWorker", "-q", "default"]

    async def open(self) -> None:
        """Connect."""
        self._queue = Queue("default", connection=Redis.from_url(url()))

    async def enqueue(self, jobs: Sequence[Job]) -> None:
        """Enqueue by the pipeline."""
        for start in range(0, len(jobs), _MANY):
            self._queue.enqueue_many(
                [
                    Queue.prepare_data(_NAME, (one.number, one.millis), result_ttl=_KEEP)
                    for one in jobs[start : start + _MANY]
                ]
            )

    async def one(self, job: Job) -> None:
        """Enqueue one."""
        self._queue.enqueue(work, job.number, job.millis, result_ttl=_KEEP)
