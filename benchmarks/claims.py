"""What a claim of ten costs, whoever waits beside: many tenants, a deep backlog, a million parked jobs.

All stores are measured in turn, so that noise hits them alike and ratios hold. Ten jobs come in for each ten
that go out, so that every store keeps its size. Beside what a caller waits, the processor time of the whole
process is counted: on a busy machine only that can be compared.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.stage import Bench, quantiles
from fairlane.model.layers import Kind, TenantRules
from fairlane.model.limits import Limits

FEW = 100
SMALL = 10_000


async def open_all(folder: str, many: int, deep: int) -> dict[str, Bench]:
    """Fill a store for each case."""
    names = ("few", "many", "deep", "paused", "capped")
    benches = {name: Bench(folder, name) for name in names}
    await benches["few"].fill(SMALL, FEW)
    await benches["many"].fill(many, many)
    await benches["deep"].fill(deep, FEW)
    await benches["paused"].pause("held0")
    await benches["capped"].declare(Kind.TENANT, "held0", TenantRules(limits={"*": Limits(running=1)}))
    for name in ("paused", "capped"):
        await benches[name].fill(deep, 1, prefix="held")
        await benches[name].fill(SMALL, FEW)
    for _ in range(3):  # the one claim that the cap allows, and what is held is parked
        await benches["capped"].claim(1)
    return benches


async def measure(folder: str, *, many: int, deep: int, claims: int) -> dict[str, Any]:
    """Give the quantiles of each case, and their ratios to those of few tenants and jobs."""
    benches = await open_all(folder, many, deep)
    times: dict[str, list[float]] = {name: [] for name in benches}
    busy: dict[str, list[float]] = {name: [] for name in benches}
    for _ in range(claims):
        for name, bench in benches.items():
            start, worked = time.perf_counter(), time.process_time()
            taken = await bench.claim(10)
            times[name].append(time.perf_counter() - start)
            busy[name].append(time.process_time() - worked)
            await bench.settle(taken)
            await bench.enqueue(*(bench.new(claim.job.tenant) for claim in taken))
    for bench in benches.values():
        await bench.store.upkeep.aclose()
    meanings = {
        "few": f"{FEW} tenants, {SMALL:,} jobs",
        "many": f"{many:,} tenants, as many jobs",
        "deep": f"{FEW} tenants, {deep:,} jobs",
        "paused": f"as the first, and {deep:,} jobs of a paused tenant",
        "capped": f"as the first, and {deep:,} jobs of a tenant at its running limit",
    }
    waits = {name: quantiles(values) for name, values in times.items()}
    costs = {name: quantiles(values) for name, values in busy.items()}
    return {
        meaning: {
            **waits[name],
            "p95_ratio": waits[name]["p95_ms"] / waits["few"]["p95_ms"],
            **{f"cpu_{cut}": value for cut, value in costs[name].items()},
            "cpu_p50_ratio": costs[name]["p50_ms"] / costs["few"]["p50_ms"],
            "cpu_p95_ratio": costs[name]["p95_ms"] / costs["few"]["p95_ms"],
        }
        for name, meaning in meanings.items()
    }


def show(found: dict[str, Any]) -> None:
    """Print the figures for people."""
    print("\na claim of ten, interleaved, as many jobs coming in; ratios to the first")
    for name, cuts in found.items():
        print(f"  {name}: " + "  ".join(f"{cut} {value:,.2f}" for cut, value in cuts.items()))
