"""Measure what removing a million finished jobs costs those who claim meanwhile.

    python -m benchmarks.pruning
    python -m benchmarks.pruning --only archive --url postgresql://… --jobs 100000

The store has --jobs finished jobs whose retention is over, and jobs that wait. One process claims and settles
them, one at a time; first alone for --seconds, then while another process prunes, at most for --most seconds.
`archive` also writes what is removed into files.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from tempfile import TemporaryDirectory
from typing import Final
from uuid import UUID

import msgspec

from benchmarks.command import Scenarios, options, run
from benchmarks.figures import Amounts
from benchmarks.measured_store import MeasuredStore, quantiles
from fairlane.lab.bench.driver import ALL, SUCCEEDED
from fairlane.lab.bench.report import Amount, Goal, ratio
from fairlane.model.finished_job import FinishedJob
from fairlane.model.instants import DAY
from fairlane.model.lifecycle.record_changes import new_record, stopped
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.history import MAX_RESTORED, RestoreRequest
from fairlane.store.contract.jobs import CountRequest

SCENARIOS: Final = ("prune", "archive")

ALONE: Final = "claims alone, p99"
BESIDE: Final = "claims beside pruning, p99"
TIMES: Final = "p99 beside, of p99 alone"
MORE: Final = "p99 beside, above p99 alone"
SPEED: Final = "jobs removed in a second"

GOALS: Final = {MORE: Goal("at most 10 ms more", 10)}

_AT_ONCE: Final = 2
_WAITING: Final = 2_000
_TENANTS: Final = 100


def measure(place: str, name: str, jobs: int, seconds: int, most: int, archive: str | None = None) -> Amounts:
    """Fill a store of its own, then claim alone and beside a process that prunes."""
    bench = MeasuredStore(place, name)
    asyncio.run(_fill(bench, jobs))
    alone = asyncio.run(_claim(bench, seconds))
    command = [sys.executable, "-m", "benchmarks.pruner", bench.url, *([archive] if archive else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 (our own program)
        beside = asyncio.run(_claim(bench, most, process))
        if process.poll() is None:
            process.kill()
    took, left = beside.took, asyncio.run(_left(bench))
    before, after = Amount(alone.p99, "ms"), Amount(beside.p99, "ms")
    return {
        ALONE: before,
        BESIDE: after,
        TIMES: ratio(after, before),
        MORE: Amount(beside.p99 - alone.p99, "ms"),
        SPEED: Amount((jobs - left) / took, "jobs/s"),
    }


class _Claims(msgspec.Struct):
    """How long claims took: the slowest of a hundred, in milliseconds, and all together, in seconds."""

    p99: float
    took: float


async def _fill(bench: MeasuredStore, jobs: int) -> None:
    """Put finished jobs into the history that ended eight to nine days ago."""
    await bench.store.upkeep.migrate()
    now = time.time_ns() // 1_000
    starts = iter(range(0, jobs, MAX_RESTORED))

    async def restore() -> None:
        for start in starts:
            numbers = range(start, min(jobs, start + MAX_RESTORED))
            ended = tuple(_ended(bench, number, now - 9 * DAY + number * DAY // jobs) for number in numbers)
            await bench.store.history.restore(RestoreRequest(scope=ALL, jobs=ended))

    await asyncio.gather(*(restore() for _ in range(_AT_ONCE)))
    await bench.store.upkeep.aclose()


def _ended(bench: MeasuredStore, number: int, at: int) -> FinishedJob:
    """Return a job that was cancelled at an instant, with an id of then."""
    new = msgspec.structs.replace(
        bench.new(f"t{number % _TENANTS}"), id=UUID(int=(at // 1_000 << 80) | number)
    )
    return FinishedJob(stopped(new_record(new, at), State.CANCELLED, "asked", at))


async def _claim(
    bench: MeasuredStore, seconds: int, process: subprocess.Popen[bytes] | None = None
) -> _Claims:
    """Claim and settle one job after the other, for so long or until the process has ended."""
    times: list[float] = []
    began = time.perf_counter()
    waiting = 0
    while time.perf_counter() - began < seconds and (process is None or process.poll() is None):
        if not waiting:
            await bench.fill(_WAITING, 10)
            waiting = _WAITING
        before = time.perf_counter()
        claims = await bench.claim(1)
        times.append(time.perf_counter() - before)
        await bench.settle(claims, SUCCEEDED)
        waiting -= 1
    took = time.perf_counter() - began
    await bench.store.upkeep.aclose()
    return _Claims(quantiles(times)["p99_ms"], took)


async def _left(bench: MeasuredStore) -> int:
    """Return how many of the old jobs are still there: nothing else is cancelled here."""
    reply = await bench.store.jobs.count(CountRequest(scope=ALL))
    await bench.store.upkeep.aclose()
    return sum(one.jobs for one in reply.counts if one.state is State.CANCELLED)


_NUMBERS: Final = {
    "jobs": (1_000_000, "finished jobs whose retention is over"),
    "seconds": (20, "how long claims are timed alone"),
    "most": (600, "and beside pruning at most"),
    "rounds": (1, "how often each is measured"),
}


def main() -> int:
    """Read the arguments, measure, print."""
    given = options("pruning", __doc__, SCENARIOS, _NUMBERS).parse_args()

    def make(folder: str) -> Scenarios:
        place = given.url or folder
        numbers = (given.jobs, given.seconds, given.most)
        return {
            "prune": lambda n: measure(place, f"prune{n}", *numbers),
            "archive": lambda n: _archived(place, n, *numbers, folder),
        }

    return run(given, make, GOALS, given.rounds)


def _archived(place: str, number: int, jobs: int, seconds: int, most: int, folder: str) -> Amounts:
    with TemporaryDirectory(dir=folder) as archive:
        return measure(place, f"archive{number}", jobs, seconds, most, archive)


if __name__ == "__main__":
    sys.exit(main())
