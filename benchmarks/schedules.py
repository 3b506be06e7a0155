"""Measure time: schedules that are due in one second, delayed jobs, and what both cost until they are due.

    python -m benchmarks.schedules --rounds 3
    python -m benchmarks.schedules --only due --url redis://… --schedules 10000

Each round plays every scenario on an empty store: a file, or with --url a schema or key prefix of its own on
that server, removed afterwards. Timings on a shared machine are noisy: do not compare figures of two runs.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Final

from benchmarks import delayed, slots
from benchmarks.command import Scenarios, options, run
from benchmarks.figures import Amounts
from fairlane.lab.bench.report import Amount, Goal

SCENARIOS: Final = ("due", "starts", "storm")

FIRED: Final = "all enqueued by three schedulers, one of them killed"
IDLE: Final = "calls of the duty while nothing is due"
START: Final = "start after the time of a delayed job, p95"

GOALS: Final = {
    FIRED: Goal("at most 5 s", 5),
    IDLE: Goal("at most 0.2 a second", 0.2),
    START: Goal("at most 50 ms", 50),
}

_NUMBERS: Final = {
    "schedules": (10_000, "schedules due in one second"),
    "delayed": (200, "delayed jobs that a worker waits for"),
    "storm": (100_000, "delayed jobs due in one second"),
    "rounds": (3, "how often each is measured"),
}


def of_due(found: dict[str, Any], schedules: int) -> Amounts:
    """Return the figures of schedules; each must have one job."""
    if found["jobs"] != schedules or found["killed"] != 1:
        raise RuntimeError(f"{found['jobs']} jobs of {schedules} schedules, {found['killed']} killed")
    return {
        FIRED: Amount(found["seconds"], "s"),
        "jobs": Amount(found["jobs"], "jobs"),
        IDLE: Amount(found["idle"], "a second"),
    }


def of_starts(found: dict[str, float]) -> Amounts:
    """Return how late delayed jobs start; none may be early."""
    if found["earliest_ms"] < 0:
        raise RuntimeError("a job was early")
    return {
        "start after the time of a delayed job, p50": Amount(found["p50_ms"], "ms"),
        START: Amount(found["p95_ms"], "ms"),
        "start after the time of a delayed job, p99": Amount(found["p99_ms"], "ms"),
    }


def of_storm(found: dict[str, float]) -> Amounts:
    """Return how long a storm is promoted, and what claims feel of it."""
    return {
        "all made ready": Amount(found["seconds"], "s"),
        "claim of 50 jobs meanwhile, p50": Amount(found["p50_ms"], "ms"),
        "claim of 50 jobs meanwhile, p99": Amount(found["p99_ms"], "ms"),
    }


def main() -> int:
    """Read the arguments, measure, print."""
    given = options("schedules", __doc__, SCENARIOS, _NUMBERS).parse_args()

    def make(folder: str) -> Scenarios:
        place = given.url or folder
        return {
            "due": lambda n: of_due(asyncio.run(slots.measure(place, given.schedules, n)), given.schedules),
            "starts": lambda n: of_starts(asyncio.run(delayed.starts(place, given.delayed, n))),
            "storm": lambda n: of_storm(asyncio.run(delayed.storm(place, given.storm, n))),
        }

    return run(given, make, GOALS, given.rounds)


if __name__ == "__main__":
    sys.exit(main())
