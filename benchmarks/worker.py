"""Measure what a worker costs beside its jobs: idling, connections, memory, and how fast it stops.

Throughput and latency are `fairlane bench`. Each figure comes from a worker process of its own. Run with
``make bench-worker``, or ``python -m benchmarks.worker --help``. A folder on a real disk makes commits cost
what they cost; with --url it is a server, whose queue `default` must be empty and nobody else's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

from fairlane import Fairlane, Lane, chunks
from fairlane.lab.bench.environment import host, versions
from fairlane.store.contract import FACETS, Store
from fairlane.store.opening import StoreClock, open_store, register_scheme
from fairlane.worker.command import run_worker
from fairlane.worker.worker import WorkerRuntime

COUNTED: Final = "counted+"
"""Before the scheme of a URL: a store that counts what it is asked."""

ESTABLISHED: Final = "01"
"""The state of a connected socket in /proc/net/tcp."""

BUSY: Final = 2_000
"""Jobs over which a busy worker's connections are counted."""


def make_app(url: str, slots: int) -> Fairlane:
    """Make the application of both processes."""
    app = Fairlane(url, config={}, lanes=[Lane("main", slots, ["default"])])

    @app.task(name="async")
    async def noop() -> None: ...

    return app


# ── in the worker's process ──────────────────────────────────────────────────

_asked: dict[str, int] = {}


class _Counted:
    """A facet that counts its calls."""

    def __init__(self, facet: object) -> None:
        self._facet = facet

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._facet, name)
        if not callable(real):
            return real

        async def counted(*requests: Any, **options: Any) -> Any:
            _asked[name] = _asked.get(name, 0) + 1
            return await real(*requests, **options)

        return counted


class _CountedStore:
    def __init__(self, store: Store) -> None:
        for name in FACETS:
            setattr(self, name, _Counted(getattr(store, name)))


def _open(url: str, clock: StoreClock | None) -> Store:
    return cast("Store", _CountedStore(open_store(url.removeprefix(COUNTED), clock=clock)))


def serve(url: str, slots: int, duties: str) -> int:
    """Run a worker until it is stopped, then print the calls of the store since SIGUSR2."""
    register_scheme(f"{COUNTED}{url.partition(':')[0]}", _open)
    signal.signal(signal.SIGUSR2, lambda *_: _asked.clear())
    app = make_app(f"{COUNTED}{url}", slots)
    code = run_worker(app, duties=duties == "duties")
    print(json.dumps(_asked))
    return code


def burst(url: str, slots: int) -> int:
    """Run all jobs; print the memory on the way."""
    app = make_app(url, slots)
    found: dict[int, float] = {}

    async def work() -> None:
        worker = WorkerRuntime(app, burst=True)
        running = asyncio.ensure_future(worker.run())
        marks = [10_000, 50_000, 100_000]
        while not running.done():
            await asyncio.sleep(0.02)
            if marks and worker.settled >= marks[0]:
                found[marks.pop(0)] = pss(os.getpid())
        await running
        await app.aclose()

    asyncio.run(work())
    print(json.dumps(found))
    return 0


# ── beside it ────────────────────────────────────────────────────────────────


def pss(pid: int) -> float:
    """Return the memory that a process would free if it ended, in MB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    return int(next(line for line in text.splitlines() if line.startswith("Pss:")).split()[1]) / 1024


def cpu(pid: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def connections(pid: int) -> int:
    """Count a process's connections to its store: open database files, or connected TCP sockets."""
    process = Path(f"/proc/{pid}")
    found = 0
    connected = _connected(process)
    for entry in (process / "fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            target = str(entry.readlink())
            found += target.endswith(".db") or target in connected
    return found


def _connected(process: Path) -> set[str]:
    tables = (process / "net" / name for name in ("tcp", "tcp6"))
    rows = (line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:])
    return {f"socket:[{row[9]}]" for row in rows if row[3] == ESTABLISHED}


def child(*arguments: object) -> subprocess.Popen[str]:
    """Start this module as a worker's process."""
    command = (sys.executable, "-m", "benchmarks.worker", *map(str, arguments))
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 (our own program)


def memory(url: str, jobs: int) -> dict[str, Any]:
    """Fill a store, let one process drain it, and return its memory on the way."""
    app = make_app(url, 100)
    task = task_named(app, "async")
    for start in range(0, jobs, 1_000):
        numbers = range(start, min(jobs, start + 1_000))
        app.enqueue_many(task.using(tenant=f"t{number % 10}").bind() for number in numbers)
    app.close()
    said, _ = child("--burst", url, 100).communicate()
    found: dict[str, Any] = json.loads(said)
    return found


def task_named(app: Fairlane, name: str) -> Any:
    """Return a task of an application by its name."""
    from fairlane import Task  # noqa: PLC0415 (a task of a registered name)

    declared = app.client.registry.find(name)
    if declared is None:
        raise LookupError(name)
    return Task(declared, app)


def _busy(app: Fairlane, pid: int) -> int:
    """Let a worker run many jobs; return the highest number of connections meanwhile."""
    task = task_named(app, "async").using(tenant="t0")
    most = 0
    for numbers in chunks(range(BUSY)):
        *_, last = app.enqueue_many(task.bind() for _ in numbers)
        while not last.refresh().is_finished:
            most = max(most, connections(pid))
    return most


def idling(url: str, duties: str, seconds: float, rest: float = 2) -> dict[str, Any]:
    """Measure a worker that has work, then one that has none, and stop it."""
    app = make_app(url, 16)
    process = child("--serve", url, 16, duties)
    task = task_named(app, "async")
    for _ in range(20):
        task.using(tenant="t0").enqueue().result(timeout=30)
    busy = _busy(app, process.pid)
    time.sleep(rest)
    used, at = cpu(process.pid), time.perf_counter()
    process.send_signal(signal.SIGUSR2)
    time.sleep(seconds)
    took = time.perf_counter() - at
    found: dict[str, Any] = {
        "cpu_percent": 100 * (cpu(process.pid) - used) / took,
        "pss_mb": pss(process.pid),
        "connections": connections(process.pid),
        "connections_busy": busy,
    }
    told_at = time.perf_counter()
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate()
    found["stopped_s"] = time.perf_counter() - told_at
    found["asked_per_s"] = {verb: round(n / took, 2) for verb, n in sorted(json.loads(said).items())}
    app.close()
    return found


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run every scenario and return all figures."""
    found: dict[str, Any] = {"host": {**host(), **versions()}}
    with TemporaryDirectory(dir=arguments.folder) as folder:

        def place(name: str) -> str:
            return arguments.url or f"sqlite:///{folder}/{name}.db"

        if arguments.memory:
            found["pss_mb"] = memory(place("memory"), arguments.memory)
        for duties in ("duties", "none"):
            found[f"idle, {duties}"] = idling(place(f"idle-{duties}"), duties, arguments.seconds)
    return found


def main() -> int:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to watch an idle worker")
    parser.add_argument("--memory", type=int, default=100_000, help="jobs to watch memory over; 0 for none")
    parser.add_argument("--url", help="a server's, migrated, with nobody else at work")
    parser.add_argument("--folder", type=Path, default=None, help="where the files go; a real disk counts")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--burst", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        url, slots, duties = arguments.serve
        return serve(url, int(slots), duties)
    if arguments.burst:
        return burst(arguments.burst[0], int(arguments.burst[1]))
    json.dump(measure(arguments), sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
