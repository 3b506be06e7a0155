"""Profile one job in a worker process: CPU time by part and by thread.

Each figure comes from worker processes of their own that empty a file of jobs that do nothing. Timing a part
costs some itself, so every case is also run untimed, in turns with the timed one. Counted is processor time:
it bears a busy machine, but waiting for the disk is not in it.

``make bench-worker-profile``, or ``python -m benchmarks.worker_profile --help``; with ``--write`` it makes
docs/proofs/worker-profile.json and the page of it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec

from benchmarks.worker_meter import Meter
from benchmarks.worker_profile_page import PAGE, RESULT, Column, ProfileResult, page
from fairlane import Fairlane, Lane, Task
from fairlane.lab.bench.environment import host, versions
from fairlane.worker.command import run_worker


class ProfileCase(NamedTuple):
    """One way to drain a file."""

    name: str
    tenants: int = 1
    task: str = "async"
    processes: int = 1
    slots: int = 100


CASES: Final = (
    ProfileCase("1 tenant"),
    ProfileCase("1,000 tenants", tenants=1_000),
    ProfileCase("plain def", task="plain"),
    ProfileCase("16 slots", slots=16),
    ProfileCase("2 processes", processes=2),
)


def make_app(file: str, slots: int) -> Fairlane:
    """Make the application that enqueues and works."""
    app = Fairlane(f"sqlite:///{file}", config={}, lanes=[Lane("main", slots, ["default"])])

    @app.task(name="async")
    async def nothing() -> None: ...

    @app.task(name="plain")
    def nothing_plain() -> None: ...

    return app


# ── in the worker's process ──────────────────────────────────────────────────


def drain(file: str, slots: int, *, is_timed: bool) -> int:
    """Drain a file; print the CPU time by part."""
    app = make_app(file, slots)
    meter = Meter()
    if is_timed:
        meter.install()
    meter.begin()
    code = run_worker(app, burst=True)
    print(json.dumps(meter.end()))
    return code


# ── beside it ────────────────────────────────────────────────────────────────


def fill(file: str, jobs: int, tenants: int, task: str) -> None:
    """Enqueue jobs into a new file."""
    app = make_app(file, 1)
    declared = app.client.registry.find(task)
    if declared is None:
        raise LookupError(task)
    call: Task[[], None] = Task(declared, app)
    for start in range(0, jobs, 1_000):
        numbers = range(start, min(jobs, start + 1_000))
        app.enqueue_many(call.using(tenant=f"t{number % tenants}").bind() for number in numbers)
    app.close()


def run_once(full: Path, case: ProfileCase, jobs: int, *, is_timed: bool) -> dict[str, float]:
    """Drain a copy of a full file; return the microseconds per job, by part."""
    for old in full.parent.glob("run.db*"):
        old.unlink() if old.is_file() else shutil.rmtree(old)
    file = shutil.copy(full, full.parent / "run.db")
    words = [sys.executable, "-m", "benchmarks.worker_profile", "--drain", file, str(case.slots)]
    words += ["--timed"] * is_timed
    started = [
        subprocess.Popen(words, stdout=subprocess.PIPE, text=True)  # noqa: S603 (our own program)
        for _ in range(case.processes)
    ]
    found: defaultdict[str, float] = defaultdict(float)
    for process in started:
        said, _ = process.communicate()
        for part, seconds in json.loads(said).items():
            found[part] += 1e6 * seconds / jobs
    return found


def measure(jobs: int, rounds: int, cases: list[ProfileCase], folder: str | None) -> Iterator[Column]:
    """Run every case in turn, with and without timers."""
    with TemporaryDirectory(dir=folder) as place:
        files = {}
        for case in cases:
            files[case] = Path(place) / case.name.replace(" ", "-") / "full.db"
            files[case].parent.mkdir()
            fill(str(files[case]), jobs, case.tenants, case.task)
        timed: dict[ProfileCase, list[dict[str, float]]] = {case: [] for case in cases}
        untimed: dict[ProfileCase, list[float]] = {case: [] for case in cases}
        for _ in range(rounds):
            for case in cases:
                timed[case].append(run_once(files[case], case, jobs, is_timed=True))
                untimed[case].append(sum(run_once(files[case], case, jobs, is_timed=False).values()))
    for case in cases:
        parts = {part for one in timed[case] for part in one}
        medians = {part: statistics.median(one.get(part, 0) for one in timed[case]) for part in parts}
        yield Column(case.name, {part: round(medians[part], 2) for part in sorted(parts)}, untimed[case])


def main() -> int:
    """Read the arguments, measure, print or write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker_profile", description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="only cases whose name holds this")
    parser.add_argument("--folder", default=None, help="where the files go; a real disk counts")
    parser.add_argument("--write", action="store_true", help="make the page, not only print it")
    parser.add_argument("--drain", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--timed", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.drain:
        return drain(given.drain[0], int(given.drain[1]), is_timed=given.timed)
    cases = [case for case in CASES if given.only in case.name]
    columns = tuple(measure(given.jobs, given.rounds, cases, given.folder))
    about: dict[str, Any] = {**host(), **versions(), "load": os.getloadavg()[0]}
    result = ProfileResult(
        given.jobs, given.rounds, {key: str(value) for key, value in about.items()}, columns
    )
    if given.write:
        RESULT.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
        PAGE.write_text(page(result), encoding="utf-8")
    print(page(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
