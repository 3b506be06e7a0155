"""PGQueuer: asyncpg, uvloop, a batch fetched at once.

Its worker is `PgQueuer.run` in a process of ours, because `pgq run` of this version ends at once with the
versions of its own requirements that are newest today.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from benchmarks.peers.protocol import Job, PeerDriver, batch, in_batches, slots, url, work_async

_MANY: Final = 1_000
_SLOTS: Final = slots(0)
_BATCH: Final = batch(1_000) if not _SLOTS else max(1, _SLOTS // 2)
"""PGQueuer wants room for at least two batches."""


async def serve() -> None:
    """Be the worker."""
    app = PgQueuer(AsyncpgDriver(await asyncpg.connect(url())))

    @app.entrypoint("job")
    async def job(found: Any) -> None:
        await work_async(**json.loads(found.payload))

    await app.run(batch_size=_BATCH, max_concurrent_tasks=_SLOTS or None)


class Peer(PeerDriver):
    """Jobs go in a thousand to a statement."""

    packages = ("pgqueuer", "asyncpg", "uvloop")

    def settings(self) -> str:
        """Say the batch, which decides how fast it is."""
        return f"batch {_BATCH:,}, uvloop" + (f", {_SLOTS} at once" if _SLOTS else "")

    def worker(self) -> Sequence[str]:
        """Be this module."""
        return ["python", "-m", "benchmarks.peers.drivers.pgqueuer"]

    async def prepare(self) -> str | None:
        """Make the tables."""
        await self.open()
        await self._queries.install()
        return None

    async def open(self) -> None:
        """Connect twice, for two lists at once."""
        self._queries, self._other = [Queries(AsyncpgDriver(await asyncpg.connect(url()))) for _ in range(2)]

    async def enqueue(self, jobs: Sequence[Job]) -> None:
        """Enqueue by lists, two at once."""
        await in_batches(jobs, _MANY, partial(_many, self._queries), partial(_many, self._other))

    async def one(self, job: Job) -> None:
        """Enqueue one."""
        await self._queries.enqueue("job", _payload(job))


async def _many(queries: Queries, jobs: Sequence[Job]) -> None:
    count = len(jobs)
    await queries.enqueue(["job"] * count, [_payload(one) for one in jobs], [0] * count)


def _payload(job: Job) -> bytes:
    return json.dumps({"number": job.number, "millis": job.millis}).encode()


if __name__ == "__main__":
    uvloop.run(serve())
