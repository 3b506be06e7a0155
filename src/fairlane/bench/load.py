"""What scenarios of fairness share: who comes, how much fits into a run, and what a wait may be beside alone.

Each plays the same arrivals in several ways and compares those of one round. First in, first out is the same
list under one tenant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Final

from fairlane.bench.charts import Point
from fairlane.bench.report import Goal, Medians
from fairlane.bench.scenario import TEN_MS, Setting
from fairlane.model.instants import SECOND, Micros
from fairlane.stage.arrivals import Arrival, now_and_then
from fairlane.stage.run import Run

NOISY: Final = "noisy"
FILL: Final = 0.6
"""For how much of the time others come; the rest is for machines on which the backlog goes faster."""

CONTESTED: Final = Goal("1, else nothing was contested", 1, is_least=True)


def slots_of(setting: Setting) -> int:
    """Give the slots of all worker processes together."""
    return setting.slots * setting.processes[0]


def in_time(setting: Setting, lasts: Micros) -> int:
    """Give how many jobs of this length all slots could do in the time of a run."""
    return max(1, round(setting.seconds * slots_of(setting) * SECOND / lasts))


def backlog_of(setting: Setting, otherwise: float) -> int:
    """Give the jobs that are to wait: those asked for, else as many as fit the run."""
    return setting.backlog[0] if setting.backlog else max(1, math.ceil(otherwise))


def quiet(setting: Setting, number: int, tenants: int, until: float) -> list[Arrival]:
    """Give the load of the quiet tenants: each about one job a second, the same for a seed."""
    draw = Random(setting.seed + number)  # noqa: S311 (a repeatable list, no secret)
    return [
        one
        for tenant in range(1, tenants + 1)
        for one in now_and_then(draw, f"quiet-{tenant:02}", TEN_MS, until)
    ]


def waits(run: Run) -> list[Micros]:
    """Give the waits of all but the noisy tenant."""
    return run.figures.waits(without={NOISY})


def near_alone(medians: Medians, name: str, factor: float, more: float) -> Goal:
    """Let a wait be a few times, or a few milliseconds, more than what it is alone.

    >>> [near_alone({"alone p95": alone}, "p95", 1.5, 20).limit for alone in (4, 90)]
    [24, 135.0]
    """
    alone = medians[f"alone {name}"]
    text = f"at most {factor:g} × alone, or alone + {more:g} ms"
    return Goal(text, max(factor * alone, alone + more))


def backlogged(run: Run, arrivals: Sequence[Arrival]) -> float:
    """Say 1 if the noisy tenant had jobs waiting until the last of the others came."""
    last_at = run.began_at + max((one.at for one in arrivals), default=0)
    starts = (one.started_at or 0 for one in run.figures.jobs.values() if one.tenant == NOISY)
    return float(max(starts, default=0) >= last_at)


def points(run: Run, tenants: Sequence[str] = (), *, without: Sequence[str] = ()) -> list[Point]:
    """Give when each job came and how long it waited; of these tenants, or of all but those."""
    return [
        ((one.brought_at - run.began_at) / SECOND, one.wait / 1_000)
        for one in run.figures.jobs.values()
        if one.tenant not in without and (not tenants or one.tenant in tenants)
    ]
