"""Measure delayed jobs: how soon after their time they start, and a storm that is due in one second."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from benchmarks.measured_store import MeasuredStore, own_url, quantiles
from fairlane import Fairlane
from fairlane.duties.promote import promote
from fairlane.lab.bench.driver import ALL
from fairlane.model.instants import SECOND
from fairlane.store.contract.jobs import FindRequest
from fairlane.worker.worker import WorkerRuntime

LEAD: Final = 3.0
"""Seconds until the first job is due: time for the worker to start."""

APART: Final = 0.05
TENANTS: Final = 100
CLAIMED: Final = 50
CLAIMS: Final = 2
"""The fewest claims that have quantiles."""


async def starts(place: str, jobs: int, number: int = 0) -> dict[str, float]:
    """Enqueue jobs that are due one after the other, and let a worker wait for them; milliseconds."""
    url = own_url(place, f"starts{number}") if "://" in place else f"sqlite:///{place}/starts{number}.db"
    app = Fairlane(url)

    @app.task(name="noop")
    async def noop() -> None:
        """Do nothing."""

    store = app.client.store
    await store.upkeep.migrate()
    worker = WorkerRuntime(app)
    running = asyncio.ensure_future(worker.run())
    for one in range(jobs):
        await noop.using(tenant="acme", delay=LEAD + one * APART).aenqueue()
    while worker.settled < jobs:  # noqa: ASYNC110 (a look now and then costs the worker less than a signal)
        await asyncio.sleep(APART)
    worker.stop()
    await running
    late: list[float] = []
    cursor = None
    while True:
        page = await store.jobs.find(FindRequest(scope=ALL, limit=100, cursor=cursor))
        late += [(one.attempts[-1].started_at - one.run_at) / SECOND for one in page.jobs]
        cursor = page.cursor
        if cursor is None:
            break
    await app.aclose()
    return {**quantiles(late), "earliest_ms": 1e3 * min(late)}


async def storm(place: str, jobs: int, number: int = 0) -> dict[str, float]:
    """Let many jobs be due in one second; meanwhile a small tenant's jobs are claimed and settled."""
    bench = MeasuredStore(place, f"delayed{number}")
    await bench.store.upkeep.migrate()
    due_at = time.time_ns() // 1000 + (2 + jobs // 2_000) * SECOND
    await bench.fill(jobs, TENANTS, run_at=due_at)
    wait = due_at / SECOND - time.time()
    if wait <= 0:
        raise RuntimeError("filling took longer than the jobs were delayed")
    await asyncio.sleep(wait)
    claims: list[float] = []
    done = asyncio.Event()

    async def claim() -> None:
        while not done.is_set() or len(claims) < CLAIMS:
            before = time.perf_counter()
            found = await bench.claim(CLAIMED)
            claims.append(time.perf_counter() - before)
            await bench.settle(found)
            await asyncio.sleep(0)

    claiming = asyncio.ensure_future(claim())
    before = time.perf_counter()
    while not await promote(bench.store):
        pass
    took = time.perf_counter() - before
    done.set()
    await claiming
    await bench.store.upkeep.aclose()
    return {"seconds": took, **quantiles(claims)}
