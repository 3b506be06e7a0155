"""What a store costs through its contract, without client and worker: `make bench`.

Prints a table and, with --json, one JSON object. Timings on a shared machine are noisy: scenarios that are
compared run interleaved in one process, and every figure has its spread. Figures of different runs are not to
be compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fairlane.model.identifiers import IdMaker
from fairlane.model.instants import SECOND
from fairlane.model.job import Claim, NewJob
from fairlane.model.judge import Succeeded, judge
from fairlane.model.layers import Kind, Subject
from fairlane.model.lifecycle import Home
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.claims import ClaimRequest, SettleRequest, Wish
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.contract.policies import HoldRequest
from fairlane.store.contract.request import Request
from fairlane.store.opening import open_store

ALL = Scope.all()
BATCH = 1_000
CLAIMED = 100


class Bench:
    """One empty store of the kind that is measured."""

    def __init__(self, folder: str, number: int) -> None:
        """Give it a file of its own."""
        self.store: Store = open_store(f"sqlite:///{folder}/bench{number}.db")
        self._ids = IdMaker(random.getrandbits)

    def new(self, tenant: str) -> NewJob:
        """Give a job as a client would send it, with a payload of 200 bytes."""
        payload = b'{"v":1,"arguments":{"text":"%s"}}' % (b"x" * 164)
        return NewJob(
            id=self._ids.next(time.time_ns() // 1000),
            tenant=tenant,
            queue="default",
            task="noop",
            payload=payload,
            checksum=0,
        )

    async def fill(self, jobs: int, tenants: int) -> float:
        """Enqueue jobs in turn for so many tenants; give the seconds it took."""
        spent = 0.0
        for start in range(0, jobs, BATCH):
            numbers = range(start, min(jobs, start + BATCH))
            batch = tuple(self.new(f"t{number % tenants}") for number in numbers)
            spent += await seconds(lambda batch=batch: self.enqueue(*batch))  # type: ignore[misc]
        return spent

    async def enqueue(self, *jobs: NewJob) -> None:
        """Enqueue one batch."""
        await self.store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=jobs))

    async def claim(self, most: int) -> tuple[Claim, ...]:
        """Claim for one worker."""
        wishes = (Wish("default", most),)
        request = ClaimRequest(scope=ALL, worker="bench", lease=600 * SECOND, wishes=wishes, total=most)
        return (await self.store.claims.claim(request)).claims

    async def settle(self, claims: tuple[Claim, ...]) -> None:
        """End attempts well."""
        settlements = tuple(judge(claim, Succeeded(), draw=0.5) for claim in claims)
        await self.store.claims.settle(SettleRequest(scope=ALL, worker="bench", settlements=settlements))

    async def pause(self, tenant: str) -> None:
        """Hold a tenant."""
        subject = Subject(Kind.TENANT, tenant)
        await self.store.policies.pause(HoldRequest(scope=ALL, subject=subject, who="bench", reason="bench"))


async def seconds(work: Callable[[], Awaitable[Any]]) -> float:
    """Time one piece of work."""
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


async def throughput(folder: str, number: int, jobs: int, tenants: int) -> dict[str, float]:
    """Put jobs in, hand them out in hundreds, settle them; count what is in history at the end."""
    bench = Bench(folder, number)
    spent = {"enqueue": await bench.fill(jobs, tenants), "claim": 0.0, "settle": 0.0}
    while True:
        start = time.perf_counter()
        claims = await bench.claim(CLAIMED)
        spent["claim"] += time.perf_counter() - start
        if not claims:
            break
        spent["settle"] += await seconds(lambda claims=claims: bench.settle(claims))  # type: ignore[misc]
    census = await bench.store.upkeep.census(Request(scope=ALL))
    if census.homes != {Home.HISTORY: jobs}:
        message = f"{jobs} jobs went in, the homes hold {census.homes}"
        raise AssertionError(message)
    await bench.store.upkeep.aclose()
    figures = {f"{name}_us": 1e6 * value / jobs for name, value in spent.items()}
    rate = jobs / (spent["claim"] + spent["settle"])
    return {**figures, "jobs_per_s": rate, "bulk_per_s": jobs / spent["enqueue"]}


async def claim_cost(benches: dict[str, Bench], claims: int) -> dict[str, list[float]]:
    """Claim and settle ten at a time, in turn on every store, so that noise hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in benches}
    for _ in range(claims):
        for name, bench in benches.items():
            start = time.perf_counter()
            taken = await bench.claim(10)
            times[name].append(time.perf_counter() - start)
            await bench.settle(taken)
    return times


def quantiles(times: list[float]) -> dict[str, float]:
    """Give the usual ones in milliseconds."""
    cuts = statistics.quantiles(times, n=100)
    return {f"p{n}_ms": 1e3 * cuts[n - 1] for n in (50, 95, 99)}


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run every scenario and give all figures."""
    found: dict[str, Any] = {"host": host(), "settings": {"store": "sqlite", "synchronous": "full"}}
    with TemporaryDirectory(dir=arguments.folder) as folder:
        found["throughput"] = {}
        for tenants in arguments.tenants:
            rounds = [
                await throughput(folder, 10 * tenants + round_, arguments.jobs, tenants)
                for round_ in range(arguments.rounds)
            ]
            found["throughput"][tenants] = {
                name: {"median": statistics.median(values), "low": min(values), "high": max(values)}
                for name in rounds[0]
                for values in [[one[name] for one in rounds]]
            }
        few, many = arguments.tenants[0] or 1, arguments.tenants[-1]
        small, large = arguments.jobs, arguments.backlog
        benches = {
            f"{few} tenants, {small} jobs": (few, small),
            f"{many} tenants, {max(small, many)} jobs": (many, max(small, many)),
            f"{few} tenants, {large} jobs": (few, large),
        }
        opened = {name: Bench(folder, number) for number, name in enumerate(benches, 900_000_000)}
        for name, (tenants, jobs) in benches.items():
            await opened[name].fill(jobs, tenants)
        held = opened[f"{few} tenants, {small} jobs and {large} of a paused tenant"] = Bench(
            folder, 990_000_000
        )
        await held.fill(small, few)
        await held.pause("t-paused")
        for start in range(0, large, BATCH):
            await held.enqueue(*(held.new("t-paused") for _ in range(min(BATCH, large - start))))
        times = await claim_cost(opened, min(arguments.claims, small // 10 - 1))
        found["claim_of_ten"] = {name: quantiles(values) for name, values in times.items()}
        first = next(iter(opened.values()))
        singles = [await seconds(lambda: first.enqueue(first.new("t0"))) for _ in range(1_000)]
        found["single_enqueue"] = quantiles(singles)
        for bench in opened.values():
            await bench.store.upkeep.aclose()
    return found


def host() -> dict[str, Any]:
    """Say on what this was measured."""
    import apsw  # noqa: PLC0415 (only to tell its version)

    return {
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "fairlane": version("fairlane"),
        "sqlite": apsw.sqlite_lib_version(),
        "machine": platform.machine(),
    }


def show(found: dict[str, Any]) -> None:
    """Print the figures for people."""
    print("host:", found["host"], " settings:", found["settings"])
    print("\nthrough the contract, one process, batches of 1,000 in and 100 out; median (low-high)")
    for tenants, figures in found["throughput"].items():
        cells = "  ".join(
            f"{n} {v['median']:,.0f} ({v['low']:,.0f}-{v['high']:,.0f})" for n, v in figures.items()
        )
        print(f"  {tenants:>7} tenants: {cells}")
    print("\na claim of ten, interleaved")
    for name, cuts in found["claim_of_ten"].items():
        print(f"  {name}: " + "  ".join(f"{cut} {value:.2f}" for cut, value in cuts.items()))
    print(
        "\none enqueue: " + "  ".join(f"{cut} {value:.2f}" for cut, value in found["single_enqueue"].items())
    )


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def main() -> None:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.contract", description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--tenants", type=_numbers, default=[1, 1_000, 100_000])
    parser.add_argument("--backlog", type=int, default=200_000)
    parser.add_argument("--claims", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None, help="where the files go; a real disk counts")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = asyncio.run(measure(arguments))
    if arguments.json:
        json.dump(found, sys.stdout)
    else:
        show(found)


if __name__ == "__main__":
    main()
