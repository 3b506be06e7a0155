"""What may go first, and what it may not do to the rest: priority inside a tenant, strict order of queues."""

from __future__ import annotations

import math
from typing import Final

from fairlane.lab.bench.fairness.load import FILL, jobs_in_run, slots_of
from fairlane.lab.bench.fairness.shares import contest_end, dispatches, least_share, overtaken_by
from fairlane.lab.bench.report import Amount, Goal, Medians, RoundResult
from fairlane.lab.bench.scenario import TEN_MS, BenchSettings, RoundRunner, Scenario
from fairlane.lab.workload.arrivals import Arrival
from fairlane.lab.workload.plan import BULK
from fairlane.model.instants import SECOND, Micros
from fairlane.model.scheduling.priority import STEP

HIGH: Final = "high"
LOW: Final = "low"
LOWS: Final = 5
SLOW: Final[Micros] = SECOND // 10
"""Long enough that Fairlane's own time hardly counts: the flood must be a full load and no more."""

MIN_SHARE: Final = 0.1
URGENT: Final = "urgent"
STARTS: Final = 100


async def _priority(settings: BenchSettings, number: int) -> RoundResult:
    """Keep all slots busy with jobs one priority point above a few others, for longer than a point is worth.

    A low-priority job may wait as long as a high-priority one, plus the worth of the point, and no longer.
    """
    runner = RoundRunner(settings, "priority", number)
    duration = STEP + math.ceil(FILL * settings.seconds * SECOND)
    arrivals = [
        *(Arrival(at, HIGH, slots_of(settings), SLOW, priority=1) for at in range(0, duration, SLOW)),
        *(Arrival(at * SECOND // LOWS, LOW, 1, SLOW) for at in range(LOWS)),
    ]
    backlog = [Arrival(0, HIGH, 5 * slots_of(settings), SLOW, priority=1)]
    # The one tenant needs all slots: with headroom kept for others the load would be more than full.
    run = await runner.execute("high-priority flood", arrivals, backlog=backlog, tenant="one", headroom=0)
    low = max(run.stats.tenants[LOW].waits, default=0)
    high = max(run.stats.tenants[HIGH].waits, default=0)
    return RoundResult(
        {
            "low waits longer than high by": Amount((low - high) / SECOND, "s"),
            "low went behind jobs that came later by": Amount(
                overtaken_by(run.stats.jobs.values(), LOW) / SECOND, "s"
            ),
            "longest wait, low": Amount(low / SECOND, "s"),
            "longest wait, high": Amount(high / SECOND, "s"),
        },
        runner.checks,
    )


def _priority_goals(_: Medians) -> dict[str, Goal]:
    boost = STEP / SECOND
    return {"low waits longer than high by": Goal(f"at most its boost, {boost:g} s", boost)}


async def _strict(settings: BenchSettings, number: int) -> RoundResult:
    """Flood the first queue of a strict lane, and measure what the queue with a minimum share gets."""
    runner = RoundRunner(settings, "strict", number)
    jobs = jobs_in_run(settings, TEN_MS)
    backlog = [
        Arrival(0, URGENT, jobs, TEN_MS),
        Arrival(0, BULK, max(1, math.ceil(2 * MIN_SHARE * jobs)), TEN_MS, BULK),
    ]
    run = await runner.execute("strict flood", [], backlog=backlog, min_share=MIN_SHARE)
    spans = run.stats.handled()
    turns = dispatches(spans, contest_end(spans))
    return RoundResult(
        {
            "bulk's least share of 100 starts": Amount(100 * least_share(turns, BULK, STARTS), "%"),
            "contested turns": Amount(len(turns), "jobs"),
        },
        runner.checks,
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
