"""What guards cost a job that goes well: the processor time of a worker, with and without them, in pairs.

    python -m benchmarks.guarded --url sqlite:////tmp/a.db --jobs 2000 --guards both

drains jobs of one task in this process, and prints what each cost it, in microseconds. With `both`, the task
has a breaker, which is closed, and a budget, of which each job spends a little.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from decimal import Decimal
from typing import Any, Final, Literal, get_args

from benchmarks.measured_store import own_url
from fairlane import Breaker, Budget, Context, Fairlane, State
from fairlane.worker.worker import WorkerRuntime

Guards = Literal["none", "breaker", "both"]

BATCH: Final = 1_000
TENANTS: Final = 10
CENT: Final = Decimal("0.01")


def guarded(app: Fairlane, guards: Guards) -> Any:
    """Declare the task with its guards, and return it."""
    if guards == "both":

        @app.task(name="call", breaker="mail", budget="ai")
        async def call(ctx: Context) -> None:
            ctx.spend(CENT)

        return call
    name = "mail" if guards == "breaker" else None

    @app.task(name="call", breaker=name)
    async def plain() -> None: ...

    return plain


async def drain(url: str, jobs: int, guards: Guards) -> float:
    """Enqueue jobs, then let a worker end them; return the processor time of each, in microseconds."""
    budget = Budget("ai", ceiling=CENT * jobs * 2, currency="USD", estimate=CENT)
    async with Fairlane(url, config={}, breakers=[Breaker("mail")], budgets=[budget]) as app:
        task = guarded(app, guards)
        await app.client.store.upkeep.migrate()
        for start in range(0, jobs, BATCH):
            batch = range(start, min(jobs, start + BATCH))
            await app.aenqueue_many(task.using(tenant=f"t{number % TENANTS}").bind() for number in batch)
        before = time.process_time()
        await WorkerRuntime(app, burst=True).run()
        took = time.process_time() - before
        counts = await app.jobs.acount()
        if counts[State.SUCCEEDED] != jobs:
            message = f"not all jobs have succeeded: {counts}"
            raise AssertionError(message)
    return 1e6 * took / jobs


def measure(place: str, jobs: int, guards: Guards, number: int = 0) -> float:
    """Measure in a process of its own."""
    name = f"guarded_{guards}{number}"
    url = own_url(place, name) if "://" in place else f"sqlite:///{place}/{name}.db"
    words = ("--url", url, "--jobs", str(jobs), "--guards", guards)
    command = [sys.executable, "-m", "benchmarks.guarded", *words]
    found = subprocess.run(command, stdout=subprocess.PIPE, check=True)  # noqa: S603 (our own program)
    return float(found.stdout)


def main() -> int:
    """Drain once, and print what a job cost."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guarded")
    parser.add_argument("--url", required=True)
    parser.add_argument("--jobs", type=int, default=2_000)
    parser.add_argument("--guards", choices=get_args(Guards), default="both")
    given = parser.parse_args()
    print(asyncio.run(drain(given.url, given.jobs, given.guards)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
