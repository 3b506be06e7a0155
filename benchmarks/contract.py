"""Measure a store through its contract, without client and worker: `make bench`.

What a claim costs as work grows, and what whole workers do, is `fairlane bench`.

Prints tables and, with --json, one JSON object. Timings on a shared machine are noisy: scenarios that are
compared run interleaved in one process, and every figure has its spread. Figures of different runs are not to
be compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import profile, reading
from benchmarks.measured_store import MeasuredStore, clean, seconds
from fairlane.lab.bench.driver import ALL
from fairlane.lab.bench.environment import host, versions
from fairlane.model.lifecycle.states import Home
from fairlane.store.contract import upkeep

CLAIMED = 100
PARTS = ("throughput", "reading", "profile")


async def throughput(folder: str, name: str, jobs: int, tenants: int, producers: int) -> dict[str, float]:
    """Enqueue jobs, claim them in hundreds, settle them; check the history at the end."""
    crowd = MeasuredStore(folder, f"{name}-crowd")
    await crowd.store.upkeep.migrate()
    at_once = await crowd.fill_at_once(jobs, tenants, producers)
    await crowd.store.upkeep.aclose()
    bench = MeasuredStore(folder, name)
    await bench.store.upkeep.migrate()
    spent = {"enqueue": await bench.fill(jobs, tenants), "claim": 0.0, "settle": 0.0}
    while True:
        start = time.perf_counter()
        taken = await bench.claim(CLAIMED)
        spent["claim"] += time.perf_counter() - start
        if not taken:
            break
        spent["settle"] += await seconds(lambda taken=taken: bench.settle(taken))  # type: ignore[misc]
    census = await bench.store.upkeep.census(upkeep.CensusRequest(scope=ALL))
    if census.homes != {Home.HISTORY: jobs}:
        message = f"{jobs} jobs went in, the homes hold {census.homes}"
        raise AssertionError(message)
    await bench.store.upkeep.aclose()
    figures = {f"{verb}_us": 1e6 * value / jobs for verb, value in spent.items()}
    rate = jobs / (spent["claim"] + spent["settle"])
    bulk = {"bulk_per_s": jobs / spent["enqueue"], f"bulk_by_{producers}_per_s": jobs / at_once}
    return {**figures, "jobs_per_s": rate, **bulk}


async def throughputs(folder: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run the rounds of all numbers of tenants in turn."""
    rounds: dict[int, list[dict[str, float]]] = {tenants: [] for tenants in arguments.tenants}
    for number in range(arguments.rounds):
        for tenants, found in rounds.items():
            name = f"{tenants}-{number}"
            found.append(await throughput(folder, name, arguments.jobs, tenants, arguments.producers))
    return {
        str(tenants): {
            name: {"median": statistics.median(values), "low": min(values), "high": max(values)}
            for name in found[0]
            for values in [[one[name] for one in found]]
        }
        for tenants, found in rounds.items()
    }


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run the requested parts and return all figures."""
    found: dict[str, Any] = {
        "host": {**host(), **versions()},
        "settings": {"store": "sqlite", "synchronous": "full"},
    }
    if arguments.url is not None:
        found["settings"] = {"store": arguments.url.partition(":")[0]}
        try:
            found["throughput"] = await throughputs(arguments.url, arguments)
        finally:
            await clean(arguments.url)
        return found
    with TemporaryDirectory(dir=arguments.folder) as folder:
        if "throughput" in arguments.only:
            found["throughput"] = await throughputs(folder, arguments)
        if "reading" in arguments.only:
            found["reading"] = await reading.measure(folder, arguments.rows)
        if "profile" in arguments.only:
            found["profile"] = await profile.measure(folder, arguments.jobs, arguments.tenants)
    return found


def show(found: dict[str, Any]) -> None:
    """Print the figures for people."""
    if "profile" in found:
        profile.show(found["profile"], found["host"])
    if set(found) > {"host", "settings", "profile"} or "profile" not in found:
        print("host:", found["host"], " settings:", found["settings"])
    if "throughput" in found:
        print("\nthrough the contract, one process, batches of 1,000 in and 100 out; median (low-high)")
        for tenants, figures in found["throughput"].items():
            cells = "  ".join(
                f"{n} {v['median']:,.0f} ({v['low']:,.0f}-{v['high']:,.0f})" for n, v in figures.items()
            )
            print(f"  {tenants:>7} tenants: {cells}")
    if "reading" in found:
        reading.show(found["reading"])


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _parts(text: str) -> list[str]:
    parts = text.split(",")
    if not set(parts) <= set(PARTS):
        message = f"parts are {', '.join(PARTS)}"
        raise argparse.ArgumentTypeError(message)
    return parts


def main() -> None:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.contract", description=__doc__)
    parser.add_argument("--url", help="measure throughput on this server, under names of its own")
    parser.add_argument("--only", type=_parts, default=["throughput"], help=", ".join(PARTS))
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--tenants", type=_numbers, default=[1, 1_000, 100_000])
    parser.add_argument("--producers", type=int, default=4, help="how many enqueue at once, beside one alone")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=100_000, help="jobs in the store, for reading")
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
