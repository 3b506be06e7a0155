"""What may go first, and what it may not do to the rest: priority inside a tenant, strict order of queues."""

from __future__ import annotations

import math
from typing import Final

from fairlane.bench.load import FILL, in_time, slots_of
from fairlane.bench.report import Amount, Goal, Medians, Round
from fairlane.bench.scenario import TEN_MS, Scenario, Setting, Stage
from fairlane.bench.shares import contest_end, dispatches, least_share, overtaken_by
from fairlane.model.instants import SECOND, Micros
from fairlane.model.priority import STEP
from fairlane.stage.arrivals import Arrival
from fairlane.stage.plan import BULK

HIGH: Final = "high"
LOW: Final = "low"
LOWS: Final = 5
SLOW: Final[Micros] = SECOND // 10
"""So long that what Fairlane itself needs hardly counts: the flood is to be a full load and no more."""

MIN_SHARE: Final = 0.1
URGENT: Final = "urgent"
STARTS: Final = 100


async def _priority(setting: Setting, number: int) -> Round:
    """Keep all slots busy with jobs that are one point above a few others, for longer than a point is worth.

    A low job may wait as long as a high one, plus what the point is worth, and no longer.
    """
    stage = Stage(setting, "priority", number)
    lasts = STEP + math.ceil(FILL * setting.seconds * SECOND)
    arrivals = [
        *(Arrival(at, HIGH, slots_of(setting), SLOW, priority=1) for at in range(0, lasts, SLOW)),
        *(Arrival(at * SECOND // LOWS, LOW, 1, SLOW) for at in range(LOWS)),
    ]
    ahead = [Arrival(0, HIGH, 5 * slots_of(setting), SLOW, priority=1)]
    # The one tenant is to have all slots: with some of them kept for others the load would be more than full.
    run = await stage.play("high-priority flood", arrivals, ahead=ahead, tenant="one", headroom=0)
    low = max(run.figures.tallies[LOW].waits, default=0)
    high = max(run.figures.tallies[HIGH].waits, default=0)
    return Round(
        {
            "low waits longer than high by": Amount((low - high) / SECOND, "s"),
            "low went behind jobs that came later by": Amount(
                overtaken_by(run.figures.jobs.values(), LOW) / SECOND, "s"
            ),
            "longest wait, low": Amount(low / SECOND, "s"),
            "longest wait, high": Amount(high / SECOND, "s"),
        },
        stage.checks,
    )


def _priority_goals(_: Medians) -> dict[str, Goal]:
    boost = STEP / SECOND
    return {"low waits longer than high by": Goal(f"at most its boost, {boost:g} s", boost)}


async def _strict(setting: Setting, number: int) -> Round:
    """Flood the first queue of a strict lane, and see what the one with a minimum share still gets."""
    stage = Stage(setting, "strict", number)
    jobs = in_time(setting, TEN_MS)
    ahead = [
        Arrival(0, URGENT, jobs, TEN_MS),
        Arrival(0, BULK, max(1, math.ceil(2 * MIN_SHARE * jobs)), TEN_MS, BULK),
    ]
    run = await stage.play("strict flood", [], ahead=ahead, min_share=MIN_SHARE)
    spans = run.figures.handled()
    turns = dispatches(spans, contest_end(spans))
    return Round(
        {
            "bulk's least share of 100 starts": Amount(100 * least_share(turns, BULK, STARTS), "%"),
            "contested turns": Amount(len(turns), "jobs"),
        },
        stage.checks,
    )


def _strict_goals(_: Medians) -> dict[str, Goal]:
    least = 100 * MIN_SHARE
    return {
        "bulk's least share of 100 starts": Goal(f"at least its minimum, {least:g} %", least, is_least=True),
        "contested turns": Goal(f"at least {STARTS}, else nothing was contested", STARTS, is_least=True),
    }


ORDER: Final = (
    Scenario("priority", _priority, _priority_goals),
    Scenario("strict", _strict, _strict_goals),
)
