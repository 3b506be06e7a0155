"""Measure handlers in child processes: how many a second, how soon the first, what two cores bring, memory.

    python -m benchmarks.children --jobs 20000 --rounds 3
    python -m benchmarks.children --only memory --url postgresql://… --most 100000

Every figure is of a real ``fairlane worker`` in a process of its own, on an empty store: a file, or with
--url a schema or key prefix of its own on that server, removed afterwards.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

from benchmarks.children_app import CHILDREN, URL, make_app
from benchmarks.command import Scenarios, options, run
from benchmarks.figures import Amounts
from benchmarks.measured_store import MeasuredStore
from benchmarks.worker import pss, task_named
from fairlane import Fairlane, State, chunks
from fairlane.lab.bench.report import Amount, Goal
from fairlane.store.contract import Store

WARM: Final = 6.0
"""Seconds that the first child is kept busy, so that the next job needs another one."""
BURN: Final = 0.05
"""Seconds of the processor that a job of the scenario `cores` takes."""

GOALS: Final = {
    "empty jobs of two children": Goal("at least 3,000 jobs/s", 3_000, is_least=True),
    "first job of a new child": Goal("at most 300 ms", 300),
    "two children against one": Goal("at least 1.8 ×", 1.8, is_least=True),
    "memory after all jobs against a tenth": Goal("at most 1.05 ×", 1.05),
}


@contextmanager
def worker(url: str, children: int, *, burst: bool = True) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker with so many children; stopped at the end if it still runs."""
    environment = {**os.environ, URL: url, CHILDREN: str(children)}
    command = [sys.executable, "-m", "fairlane", "worker", "benchmarks.children_app:app", "--processes", "0"]
    process = subprocess.Popen(  # noqa: S603 (our own program)
        [*command, "--burst"] if burst else command, env=environment, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def fill(client: Fairlane, name: str, jobs: int, *arguments: Any) -> None:
    """Enqueue so many jobs of a task, for ten tenants."""
    task = task_named(client, name)
    for numbers in chunks(range(jobs)):
        client.enqueue_many(task.using(tenant=f"t{number % 10}").bind(*arguments) for number in numbers)


def done(client: Fairlane) -> int:
    """Return how many jobs have succeeded."""
    return client.jobs.count(queue="default")[State.SUCCEEDED]


def throughput(url: str, jobs: int) -> Amounts:
    """Return how many empty jobs two children end in a second; their own start is included."""
    with closing(make_app(url, 2)) as client:
        fill(client, "noop", jobs)
        with worker(url, 2) as process:
            process.wait()
        return {"empty jobs of two children": Amount(_rate(client, "noop"), "jobs/s")}


def _rate(client: Fairlane, task: str) -> float:
    """Return the jobs a second from the first start to the last end, by the clock of the store."""
    attempts = [attempt for job in client.jobs.each(task=task) for attempt in job.attempts]
    began_at = min(attempt.started_at for attempt in attempts)
    ended_at = max(attempt.ended_at for attempt in attempts if attempt.ended_at is not None)
    return len(attempts) / (ended_at - began_at).total_seconds()


def start(url: str) -> Amounts:
    """Return the milliseconds from an enqueue to the handler in a child that is there, and in a new one.

    An idle worker keeps one child. It is kept busy, so that the next job needs another one.
    """
    with closing(make_app(url, 2)) as client, worker(url, 2, burst=False):
        task = task_named(client, "stamp").using(tenant="t0")
        task.enqueue(0).result(timeout=60)
        began = time.monotonic()
        warm = task.enqueue(WARM)
        while warm.refresh().state is not State.RUNNING:
            time.sleep(0.001)
        began_again = time.monotonic()
        new = task.enqueue(0)
        (warm_at, _), (new_at, spent) = warm.result(timeout=30), new.result(timeout=30)
    return {
        "next job of a warm child": Amount(1e3 * (warm_at - began), "ms"),
        "first job of a new child": Amount(1e3 * (new_at - began_again), "ms"),
        "first job of a new child, its processor time": Amount(1e3 * spent, "ms"),
    }


def cores(new_url: Callable[[], str], jobs: int) -> Amounts:
    """Return how much faster two children compute than one, each on a store of its own."""
    rates = []
    for children in (1, 2):
        url = new_url()
        with closing(make_app(url, children)) as client:
            fill(client, "burn", jobs, BURN)
            with worker(url, children) as process:
                process.wait()
            rates.append(_rate(client, "burn"))
    return {
        "one child computes": Amount(rates[0], "jobs/s"),
        "two children compute": Amount(rates[1], "jobs/s"),
        "two children against one": Amount(rates[1] / rates[0], "×"),
    }


def memory(url: str, jobs: int) -> Amounts:
    """Return the memory of a worker and its children after a tenth of the jobs, and after all."""
    found: dict[int, float] = {}
    with closing(make_app(url, 2)) as client:
        fill(client, "noop", jobs)
        with worker(url, 2, burst=False) as process:
            for mark in (jobs // 10, jobs):
                while done(client) < mark:
                    time.sleep(0.05)
                found[mark] = _family(process.pid)
    return {
        f"memory after {jobs // 10:,} jobs": Amount(found[jobs // 10], "MB"),
        f"memory after {jobs:,} jobs": Amount(found[jobs], "MB"),
        "memory after all jobs against a tenth": Amount(found[jobs] / found[jobs // 10], "×"),
    }


def _family(pid: int) -> float:
    """Return the memory of a process and of all that it started, in MB."""
    total = pss(pid)
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text(encoding="ascii").split():
            total += _family(int(child))
    return total


def _new_store(place: str, name: str) -> str:
    """Make an empty store: a file in a folder, or a schema or key prefix on a server; return its URL."""
    bench = MeasuredStore(place, name)
    asyncio.run(_migrate(bench.store))
    return bench.url


async def _migrate(store: Store) -> None:
    await store.upkeep.migrate()
    await store.upkeep.aclose()


SCENARIOS: Final = ("start", "throughput", "cores", "memory")

_NUMBERS: Final = {
    "jobs": (20_000, "jobs of throughput"),
    "most": (100_000, "jobs to watch memory over"),
    "computing": (200, "jobs that compute, each for 50 ms"),
    "rounds": (3, "how often each is measured"),
}


def main() -> int:
    """Read the arguments, measure, print."""
    given = options("children", __doc__, SCENARIOS, _NUMBERS).parse_args()

    def make(folder: str) -> Scenarios:
        place = given.url or folder
        names = (f"children{number}" for number in count())

        def new() -> str:
            return _new_store(place, next(names))

        return {
            "start": lambda _: start(new()),
            "throughput": lambda _: throughput(new(), given.jobs),
            "cores": lambda _: cores(new, given.computing),
            "memory": lambda _: memory(new(), given.most),
        }

    return run(given, make, GOALS, given.rounds)


if __name__ == "__main__":
    sys.exit(main())
