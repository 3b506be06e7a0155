"""Procrastinate: psycopg, LISTEN, coroutines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from procrastinate import App, PsycopgConnector

from benchmarks.peers.protocol import Job, PeerDriver, slots, url, work_async

_MANY: Final = 1_000
_SLOTS: Final = slots(50)

app = App(connector=PsycopgConnector(conninfo=url()))


@app.task(name="job")
async def job(number: int, millis: int) -> None:
    """Leave a mark."""
    await work_async(number, millis)


class Peer(PeerDriver):
    """Jobs go in a thousand to a statement, and are deleted when done, which is faster than keeping them."""

    packages = ("procrastinate", "psycopg")

    def settings(self) -> str:
        """Say how many at once."""
        return f"concurrency {_SLOTS}, done jobs deleted"

    def worker(self) -> Sequence[str]:
        """Be its own worker."""
        words = ["-c", str(_SLOTS), "--delete-jobs", "always"]
        return ["procrastinate", "--app", "benchmarks.peers.drivers.procrastinate.app", "worker", *words]

    async def prepare(self) -> str | None:
        """Make the tables."""
        async with app.open_async():
            await app.schema_manager.apply_schema_async()
        return None

    async def open(self) -> None:
        """Connect."""
        await app.open_async()

    async def enqueue(self, jobs: Sequence[Job]) -> None:
        """Defer in batches."""
        for start in range(0, len(jobs), _MANY):
            batch = jobs[start : start + _MANY]
            await job.batch_defer_async(*({"number": one.number, "millis": one.millis} for one in batch))

    async def one(self, job_: Job) -> None:
        """Defer one."""
        await job.defer_async(number=job_.number, millis=job_.millis)
