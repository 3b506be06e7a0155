"""Measure reading in a large store: find by every index and filter, count, get (S51).

Half of the jobs are history, half are ready. The few running, delayed, dead and cancelled ones were enqueued
before all others, so that a walk by time would meet them last.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.measured_store import MeasuredStore
from fairlane.lab.bench.driver import ALL, SUCCEEDED
from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.instants import HOUR
from fairlane.model.lifecycle.states import State
from fairlane.model.retry.decision import Cancelled, PermanentFailure
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import CountRequest, FindRequest, GetRequest

FEW = 500
ROUNDS = 20
TENANTS = 1_000


async def fill(bench: MeasuredStore, rows: int) -> None:
    """Enqueue the few special jobs and bring them into their states, then the many."""
    dead = PermanentFailure(Failure(ErrorClass.NON_RETRYABLE, "ValueError", "bench"))
    for ending in (dead, Cancelled("bench"), None):
        await bench.enqueue(*(bench.new("t0", queue="few", tags=("rare",)) for _ in range(FEW)))
        claims = await bench.claim(FEW, "few")
        if ending is not None:
            await bench.settle(claims, ending)
    await bench.enqueue(*(bench.new("t0", delay=HOUR, correlation_id="few") for _ in range(FEW)))
    await bench.fill(rows - 4 * FEW, TENANTS)
    for _ in range(rows // 2 // FEW):
        await bench.settle(await bench.claim(FEW), SUCCEEDED)


async def measure(folder: str, rows: int) -> dict[str, Any]:
    """Time every kind of read twenty times; return the median and the slowest."""
    bench = MeasuredStore(folder, "reading")
    await fill(bench, rows)
    jobs = bench.store.jobs
    some = (await jobs.find(FindRequest(scope=ALL, limit=1))).jobs[0]
    looks: dict[str, Any] = {
        "find newest 50": FindRequest(scope=ALL),
        "find 50 of a tenant": FindRequest(scope=Scope("t7")),
        "find by correlation id": FindRequest(scope=ALL, correlation_id="few"),
        "find by generated correlation id": FindRequest(scope=ALL, correlation_id=str(some.id)),
        "find by a tag nobody has": FindRequest(scope=ALL, tag="none"),
        "find by an argument nobody has": FindRequest(scope=ALL, where=(("text", "none"),)),
        "find by a task nobody has": FindRequest(scope=ALL, task="none"),
        **{f"find {state.value}": FindRequest(scope=ALL, states=frozenset({state})) for state in State},
        "count, all": CountRequest(scope=ALL),
        "count, a tenant": CountRequest(scope=Scope("t7")),
        "get": GetRequest(scope=ALL, ids=(some.id,)),
    }
    verbs: dict[Any, Any] = {FindRequest: jobs.find, CountRequest: jobs.count, GetRequest: jobs.get}
    found: dict[str, Any] = {}
    for name, request in looks.items():
        times = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            answer = await verbs[type(request)](request)
            times.append(1e3 * (time.perf_counter() - start))
        if isinstance(request, FindRequest | CountRequest):
            answer = answer.jobs if isinstance(request, FindRequest) else answer.counts
        median = sorted(times)[ROUNDS // 2]
        found[name] = {"median_ms": median, "slowest_ms": max(times), "found": len(answer)}
    await bench.store.upkeep.aclose()
    return {"rows": rows, "looks": found}


def show(found: dict[str, Any]) -> None:
    """Print the figures for people."""
    print(f"\nreading among {found['rows']:,} jobs, {ROUNDS} times each")
    for name, one in found["looks"].items():
        cells = f"median {one['median_ms']:.2f} ms  slowest {one['slowest_ms']:.2f} ms  found {one['found']}"
        print(f"  {name}: {cells}")
