"""Scenarios: how long quiet tenants wait beside a noisy one, and a tenant's jobs beside its held ones."""

from __future__ import annotations

import math
from typing import Final

from fairlane import Fairlane
from fairlane.lab.bench.charts import Chart
from fairlane.lab.bench.fairness.load import (
    CONTESTED,
    FILL,
    NOISY,
    backlog_of,
    backlogged,
    jobs_in_run,
    near_alone,
    points,
    quiet,
    slots_of,
    waits,
)
from fairlane.lab.bench.report import Amount, Goal, Medians, RoundResult
from fairlane.lab.bench.scenario import TEN_MS, BenchSettings, RoundRunner, Scenario, in_ms
from fairlane.lab.workload.arrivals import WORK, Arrival
from fairlane.lab.workload.plan import GATED, PAUSED
from fairlane.model.instants import SECOND, Micros
from fairlane.model.policy.overrides import Subject, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.policies import HoldRequest

QUIET: Final = 50
FEW: Final = 10
NAMES: Final = 1_000
HELD_A_SECOND: Final = 1_000
TINY: Final[Micros] = 100
TINY_A_SECOND: Final = 20_000
"""Tiny jobs of the flood for each second of the run: more than a worker process does."""


async def _flood(settings: BenchSettings, number: int) -> RoundResult:
    runner = RoundRunner(settings, "flood", number)
    arrivals = quiet(settings, number, QUIET, FILL * settings.seconds)
    flood = [Arrival(0, NOISY, jobs_in_run(settings, TEN_MS), TEN_MS)]
    alone = await runner.execute("alone", arrivals)
    fair = await runner.execute("fair", arrivals, backlog=flood)
    fifo = await runner.execute("fifo", arrivals, backlog=flood, tenant="everyone")
    amounts = {
        **in_ms(waits(alone), "p95", "p99", before="alone "),
        **in_ms(waits(fair), "p95", "p99", before="fair "),
        **in_ms(waits(fifo), "p95", "p99", before="fifo "),
        "still backlogged": Amount(backlogged(fair, arrivals), ""),
    }
    chart = Chart(
        name="flood",
        title="How long each job waited, by when it came",
        x="seconds",
        y="wait, ms",
        series={
            "noisy, fair": points(fair, [NOISY]),
            "quiet, fair": points(fair, without=[NOISY]),
            "quiet, first in, first out": points(fifo, without=[NOISY]),
            "quiet, alone": points(alone, without=[NOISY]),
        },
    )
    return RoundResult(amounts, runner.checks, chart)


async def _names(settings: BenchSettings, number: int) -> RoundResult:
    runner = RoundRunner(settings, "names", number)
    names = tuple(f"work-{at}" for at in range(NAMES))
    arrivals = quiet(settings, number, QUIET, FILL * settings.seconds)
    jobs = jobs_in_run(settings, TEN_MS)
    flood = [Arrival(0, NOISY, 1, TEN_MS, names[at % NAMES]) for at in range(jobs)]
    alone = await runner.execute("alone", arrivals)
    fair = await runner.execute("fair", arrivals, backlog=flood, tasks=(WORK, *names))
    amounts = {
        **in_ms(waits(alone), "p95", "p99", before="alone "),
        **in_ms(waits(fair), "p95", "p99", before="fair "),
        "still backlogged": Amount(backlogged(fair, arrivals), ""),
    }
    return RoundResult(amounts, runner.checks)


async def _tiny(settings: BenchSettings, number: int) -> RoundResult:
    """Flood with jobs so short that a worker claims hundreds of them ahead of a free slot (S68)."""
    runner = RoundRunner(settings, "tiny", number)
    arrivals = quiet(settings, number, QUIET, FILL * settings.seconds)
    jobs = math.ceil(settings.seconds * TINY_A_SECOND * settings.processes[0])
    alone = await runner.execute("alone", arrivals)
    fair = await runner.execute("fair", arrivals, backlog=[Arrival(0, NOISY, jobs, TINY)])
    amounts = {
        **in_ms(waits(alone), "p95", "p99", before="alone "),
        **in_ms(waits(fair), "p95", "p99", before="fair "),
        "still backlogged": Amount(backlogged(fair, arrivals), ""),
    }
    return RoundResult(amounts, runner.checks)


def _flood_goals(medians: Medians) -> dict[str, Goal]:
    return {
        "fair p95": near_alone(medians, "p95", 1.5, 20),
        "fair p99": near_alone(medians, "p99", 2, 50),
        "still backlogged": CONTESTED,
    }


async def _headroom(settings: BenchSettings, number: int) -> RoundResult:
    runner = RoundRunner(settings, "headroom", number)
    long = math.ceil(settings.seconds * SECOND / 2)
    arrivals = quiet(settings, number, FEW, FILL * settings.seconds / 2)
    backlog = [Arrival(0, NOISY, slots_of(settings), long)]
    alone = await runner.execute("alone", arrivals)
    without = await runner.execute("headroom 0", arrivals, backlog=backlog, headroom=0)
    with_one = await runner.execute("headroom 1", arrivals, backlog=backlog, headroom=1)
    amounts = {
        **in_ms(waits(alone), "p99", before="alone "),
        **in_ms(waits(without), "p99", before="headroom 0 "),
        **in_ms(waits(with_one), "p99", before="headroom 1 "),
    }
    return RoundResult(amounts, runner.checks)


def _headroom_goals(medians: Medians) -> dict[str, Goal]:
    return {"headroom 1 p99": Goal("at most 2 × alone", 2 * medians["alone p99"])}


async def _held(settings: BenchSettings, number: int) -> RoundResult:
    """Let a tenant's other work go on beside what a gate or a pause keeps back."""
    runner = RoundRunner(settings, "held", number)
    arrivals = [
        Arrival(one.at, "busy", 1, TEN_MS) for one in quiet(settings, number, FEW, FILL * settings.seconds)
    ]
    behind = backlog_of(settings, HELD_A_SECOND * settings.seconds)

    async def pause(app: Fairlane) -> None:
        subject = Subject(SubjectKind.TASK, PAUSED)
        request = HoldRequest(scope=Scope.all(), subject=subject, who="bench", reason="to measure beside it")
        await app.client.store.policies.pause(request)

    alone = await runner.execute("alone", arrivals)
    gate = await runner.execute("full gate", arrivals, backlog=[Arrival(0, "busy", behind, 0, GATED)])
    paused = await runner.execute(
        "paused task", arrivals, backlog=[Arrival(0, "busy", behind, 0, PAUSED)], prepare=pause
    )
    return RoundResult(
        {
            **in_ms(alone.stats.waits(), "p95", before="alone "),
            **in_ms(gate.stats.waits(), "p95", before="full gate "),
            **in_ms(paused.stats.waits(), "p95", before="paused task "),
        },
        runner.checks,
    )


def _held_goals(medians: Medians) -> dict[str, Goal]:
    goal = near_alone(medians, "p95", 1.5, 20)
    return {"full gate p95": goal, "paused task p95": goal}


NEIGHBOURS: Final = (
    Scenario("flood", _flood, _flood_goals),
    Scenario("names", _names, _flood_goals),
    Scenario("tiny", _tiny, _flood_goals),
    Scenario("headroom", _headroom, _headroom_goals),
    Scenario("held", _held, _held_goals),
)
