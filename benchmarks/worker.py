"""Measure what a worker costs on SQLite: throughput, idling, pick-up, memory, and how fast it stops.

Each figure comes from a worker process of its own. Run with ``make bench-worker``, or
``python -m benchmarks.worker --help``. A folder on a real disk makes commits cost what they cost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from benchmarks.contract import host, quantiles
from fairlane import Fairlane, Lane, State
from fairlane.store.contract import Store
from fairlane.store.opening import StoreClock, open_store, register_scheme
from fairlane.worker.command import run_worker
from fairlane.worker.worker import Worker

MB = 2**20


def make_app(file: str, slots: int, scheme: str = "sqlite") -> Fairlane:
    """Make the application that both sides share."""
    app = Fairlane(f"{scheme}:///{file}", lanes=[Lane("main", slots, ["default"])])

    @app.task(name="async")
    async def noop() -> None: ...

    @app.task(name="plain")
    def plain() -> None: ...

    return app


# ── in the worker's process ──────────────────────────────────────────────────

_asked: dict[str, int] = {}


class _Counted:
    """A facet that counts what it is asked."""

    def __init__(self, facet: object) -> None:
        self._facet = facet

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        real: Callable[..., Awaitable[Any]] = getattr(self._facet, verb)

        async def counted(*requests: Any) -> Any:
            _asked[verb] = _asked.get(verb, 0) + 1
            return await real(*requests)

        return counted


class _CountedStore:
    def __init__(self, store: Store) -> None:
        for name in ("jobs", "claims", "policies", "registry", "dead", "upkeep"):
            setattr(self, name, _Counted(getattr(store, name)))


def _open(url: str, clock: StoreClock | None) -> Store:
    return cast("Store", _CountedStore(open_store(url.replace("counted:", "sqlite:", 1), clock=clock)))


def serve(file: str, slots: int, duties: str) -> int:
    """Be a worker until told to stop, then say what was asked of the store since SIGUSR1."""
    register_scheme("counted", _open)
    signal.signal(signal.SIGUSR1, lambda *_: _asked.clear())
    app = make_app(file, slots, "counted")
    code = run_worker(app, duties=duties == "duties")
    print(json.dumps(_asked))
    return code


def burst(file: str, slots: int) -> int:
    """Run everything there is; say how long it took, and how much memory it needs on the way."""
    app = make_app(file, slots)
    found: dict[str, Any] = {"pss_mb": {}}

    async def work() -> None:
        worker = Worker(app, burst=True)
        running = asyncio.ensure_future(worker.run())
        marks = [10_000, 50_000, 100_000]
        while not running.done():
            await asyncio.sleep(0.02)
            if marks and worker.settled >= marks[0]:
                found["pss_mb"][marks.pop(0)] = pss(os.getpid())
        await running
        found["settled"] = worker.settled
        await app.aclose()

    start, spent = time.perf_counter(), time.process_time()
    asyncio.run(work())
    took = time.perf_counter() - start
    found["jobs_per_s"] = found["settled"] / took
    found["cpu_us"] = 1e6 * (time.process_time() - spent) / found["settled"]
    print(json.dumps(found))
    return 0


# ── beside it ────────────────────────────────────────────────────────────────


def pss(pid: int) -> float:
    """Give the memory that a process would free if it ended, in MB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    return int(next(line for line in text.splitlines() if line.startswith("Pss:")).split()[1]) / 1024


def cpu(pid: int) -> float:
    """Give the seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def child(*arguments: object) -> subprocess.Popen[str]:
    """Start this module as a worker's process."""
    command = (sys.executable, "-m", "benchmarks.worker", *map(str, arguments))
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 (our own program)


def throughput(folder: str, kind: str, jobs: int, slots: int, tenants: int) -> dict[str, Any]:
    """Fill a file and let one process empty it."""
    file = f"{folder}/{kind}-{slots}-{tenants}-{jobs}-{time.monotonic_ns()}.db"
    app = make_app(file, slots)
    fill(app, kind, jobs, tenants)
    app.close()
    process = child("--burst", file, slots)
    said, _ = process.communicate()
    found: dict[str, Any] = json.loads(said)
    return found


def fill(app: Fairlane, kind: str, jobs: int, tenants: int) -> None:
    """Enqueue jobs, in turn for so many tenants."""
    task = _task(app, kind)
    for start in range(0, jobs, 1_000):
        numbers = range(start, min(jobs, start + 1_000))
        app.enqueue_many(task.using(tenant=f"t{number % tenants}").bind() for number in numbers)


def _task(app: Fairlane, name: str) -> Any:
    from fairlane import Task  # noqa: PLC0415 (a task of a registered name)

    declared = app.client.registry.find(name)
    if declared is None:
        raise LookupError(name)
    return Task(declared, app)


def idling(folder: str, duties: str, seconds: float, picks: int) -> dict[str, Any]:
    """Watch a worker that has nothing to do, let it pick up single jobs, and stop it."""
    file = f"{folder}/idle-{duties}.db"
    app = make_app(file, 16)
    process = child("--serve", file, 16, duties)
    task = _task(app, "async")
    for _ in range(20):
        task.using(tenant="t0").enqueue().result(timeout=30)
    time.sleep(2)
    used, at = cpu(process.pid), time.perf_counter()
    process.send_signal(signal.SIGUSR1)
    time.sleep(seconds)
    took = time.perf_counter() - at
    found: dict[str, Any] = {
        "cpu_percent": 100 * (cpu(process.pid) - used) / took,
        "pss_mb": pss(process.pid),
    }
    waits = [_pick_up(task) for _ in range(picks)]
    told_at = time.perf_counter()
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate()
    found["stopped_s"] = time.perf_counter() - told_at
    if picks:
        found["pick_up"] = quantiles(waits)
    else:
        found["asked_per_s"] = {verb: round(n / took, 2) for verb, n in sorted(json.loads(said).items())}
    app.close()
    return found


def _pick_up(task: Any) -> float:
    job = task.using(tenant="t0").enqueue()
    while (newer := job.refresh()).state is not State.SUCCEEDED:
        time.sleep(0.02)
    time.sleep(0.05)  # it is idle again by then
    return float((newer.attempts[-1].started_at - newer.enqueued_at).total_seconds())


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run every scenario and give all figures."""
    found: dict[str, Any] = {"host": host(), "throughput": {}}
    with TemporaryDirectory(dir=arguments.folder) as folder:
        for kind in ("async", "plain"):
            for slots in arguments.slots:
                for tenants in arguments.tenants:
                    rounds = [
                        throughput(folder, kind, arguments.jobs, slots, tenants)
                        for _ in range(arguments.rounds)
                    ]
                    name = f"{kind}, {slots} slots, {tenants} tenants"
                    found["throughput"][name] = {
                        what: statistics.median(one[what] for one in rounds)
                        for what in ("jobs_per_s", "cpu_us")
                    }
        if arguments.memory:
            found["memory"] = throughput(folder, "async", arguments.memory, 100, 10)["pss_mb"]
        for duties in ("duties", "none"):
            found[f"idle, {duties}"] = idling(folder, duties, arguments.seconds, 0)
        found["idle, picking up"] = idling(folder, "duties-", 1, arguments.picks)
    return found


def main() -> int:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker", description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--slots", type=lambda text: [int(n) for n in text.split(",")], default=[16, 100])
    parser.add_argument("--tenants", type=lambda text: [int(n) for n in text.split(",")], default=[1, 1_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to watch an idle worker")
    parser.add_argument("--picks", type=int, default=200, help="how many single jobs to let it pick up")
    parser.add_argument("--memory", type=int, default=100_000, help="jobs to watch memory over; 0 for none")
    parser.add_argument("--folder", type=Path, default=None, help="where the files go; a real disk counts")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--burst", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        file, slots, duties = arguments.serve
        return serve(file, int(slots), duties)
    if arguments.burst:
        return burst(arguments.burst[0], int(arguments.burst[1]))
    json.dump(measure(arguments), sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
