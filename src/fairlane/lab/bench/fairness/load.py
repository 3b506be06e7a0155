"""What the fairness scenarios share: the arrivals, the size of a backlog, the goal of a wait.

Each scenario runs the same arrivals in several ways and compares them within a round. First in, first out is
the same list under one tenant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Final

from fairlane.lab.bench.charts import Point
from fairlane.lab.bench.report import Goal, Medians
from fairlane.lab.bench.scenario import TEN_MS, BenchSettings
from fairlane.lab.workload.arrivals import Arrival, about_every_second
from fairlane.lab.workload.run import WorkloadRun
from fairlane.model.instants import SECOND, Micros

NOISY: Final = "noisy"
FILL: Final = 0.6
"""The part of the time in which quiet tenants arrive; the rest is for faster machines."""

CONTESTED: Final = Goal("1, else nothing was contested", 1, is_least=True)


def slots_of(settings: BenchSettings) -> int:
    """Return the number of slots of all worker processes."""
    return settings.slots * settings.processes[0]


def jobs_in_run(settings: BenchSettings, duration: Micros) -> int:
    """Return how many jobs of this length all slots could run within a run."""
    return max(1, round(settings.seconds * slots_of(settings) * SECOND / duration))


def backlog_of(settings: BenchSettings, otherwise: float) -> int:
    """Return the size of the backlog: the given one, else as many jobs as fit the run."""
    return settings.backlog[0] if settings.backlog else max(1, math.ceil(otherwise))


def quiet(settings: BenchSettings, number: int, tenants: int, until: float) -> list[Arrival]:
    """Return the arrivals of the quiet tenants: about one job per second each, the same for a seed."""
    draw = Random(settings.seed + number)  # noqa: S311 (a repeatable list, no secret)
    return [
        one
        for tenant in range(1, tenants + 1)
        for one in about_every_second(draw, f"quiet-{tenant:02}", TEN_MS, until)
    ]


def waits(run: WorkloadRun) -> list[Micros]:
    """Return the waits of all but the noisy tenant."""
    return run.stats.waits(without={NOISY})


def near_alone(medians: Medians, name: str, factor: float, more: float) -> Goal:
    """Return the goal that a wait is at most some times, or some milliseconds more than, the wait alone.

    >>> [near_alone({"alone p95": alone}, "p95", 1.5, 20).limit for alone in (4, 90)]
    [24, 135.0]
    """
    alone = medians[f"alone {name}"]
    text = f"at most {factor:g} × alone, or alone + {more:g} ms"
    return Goal(text, max(factor * alone, alone + more))


def backlogged(run: WorkloadRun, arrivals: Sequence[Arrival]) -> float:
    """Return 1 if the noisy tenant had jobs waiting until the last quiet job arrived, else 0."""
    last_at = run.began_at + max((one.at for one in arrivals), default=0)
    starts = (one.started_at or 0 for one in run.stats.jobs.values() if one.tenant == NOISY)
    return float(max(starts, default=0) >= last_at)


def points(run: WorkloadRun, tenants: Sequence[str] = (), *, without: Sequence[str] = ()) -> list[Point]:
    """Return the arrival and the wait of each job, of these tenants or of all but `without`."""
    return [
        ((one.sent_at - run.began_at) / SECOND, one.wait / 1_000)
        for one in run.stats.jobs.values()
        if one.tenant not in without and (not tenants or one.tenant in tenants)
    ]
