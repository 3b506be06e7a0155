"""How long quiet tenants wait beside a noisy one, and a tenant's own work beside what is held."""

from __future__ import annotations

import math
from typing import Final

from fairlane import Fairlane
from fairlane.bench.charts import Chart
from fairlane.bench.load import (
    CONTESTED,
    FILL,
    NOISY,
    backlog_of,
    backlogged,
    in_time,
    near_alone,
    points,
    quiet,
    slots_of,
    waits,
)
from fairlane.bench.report import Amount, Goal, Medians, Round
from fairlane.bench.scenario import TEN_MS, Scenario, Setting, Stage, in_ms
from fairlane.model.instants import SECOND
from fairlane.model.layers import Kind, Subject
from fairlane.model.scope import Scope
from fairlane.stage.arrivals import WORK, Arrival
from fairlane.stage.plan import GATED, PAUSED
from fairlane.store.contract.policies import HoldRequest

QUIET: Final = 50
FEW: Final = 10
NAMES: Final = 1_000
HELD_A_SECOND: Final = 1_000


async def _flood(setting: Setting, number: int) -> Round:
    stage = Stage(setting, "flood", number)
    arrivals = quiet(setting, number, QUIET, FILL * setting.seconds)
    flood = [Arrival(0, NOISY, in_time(setting, TEN_MS), TEN_MS)]
    alone = await stage.play("alone", arrivals)
    fair = await stage.play("fair", arrivals, ahead=flood)
    fifo = await stage.play("fifo", arrivals, ahead=flood, tenant="everyone")
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
    return Round(amounts, stage.checks, chart)


async def _names(setting: Setting, number: int) -> Round:
    stage = Stage(setting, "names", number)
    names = tuple(f"work-{at}" for at in range(NAMES))
    arrivals = quiet(setting, number, QUIET, FILL * setting.seconds)
    jobs = in_time(setting, TEN_MS)
    flood = [Arrival(0, NOISY, 1, TEN_MS, names[at % NAMES]) for at in range(jobs)]
    alone = await stage.play("alone", arrivals)
    fair = await stage.play("fair", arrivals, ahead=flood, tasks=(WORK, *names))
    amounts = {
        **in_ms(waits(alone), "p95", "p99", before="alone "),
        **in_ms(waits(fair), "p95", "p99", before="fair "),
        "still backlogged": Amount(backlogged(fair, arrivals), ""),
    }
    return Round(amounts, stage.checks)


def _flood_goals(medians: Medians) -> dict[str, Goal]:
    return {
        "fair p95": near_alone(medians, "p95", 1.5, 20),
        "fair p99": near_alone(medians, "p99", 2, 50),
        "still backlogged": CONTESTED,
    }


async def _headroom(setting: Setting, number: int) -> Round:
    stage = Stage(setting, "headroom", number)
    long = math.ceil(setting.seconds * SECOND / 2)
    arrivals = quiet(setting, number, FEW, FILL * setting.seconds / 2)
    ahead = [Arrival(0, NOISY, slots_of(setting), long)]
    alone = await stage.play("alone", arrivals)
    without = await stage.play("headroom 0", arrivals, ahead=ahead, headroom=0)
    with_one = await stage.play("headroom 1", arrivals, ahead=ahead, headroom=1)
    amounts = {
        **in_ms(waits(alone), "p99", before="alone "),
        **in_ms(waits(without), "p99", before="headroom 0 "),
        **in_ms(waits(with_one), "p99", before="headroom 1 "),
    }
    return Round(amounts, stage.checks)


def _headroom_goals(medians: Medians) -> dict[str, Goal]:
    return {"headroom 1 p99": Goal("at most 2 × alone", 2 * medians["alone p99"])}


async def _held(setting: Setting, number: int) -> Round:
    """Let a tenant's other work go on beside what a gate or a pause keeps back."""
    stage = Stage(setting, "held", number)
    arrivals = [
        Arrival(one.at, "busy", 1, TEN_MS) for one in quiet(setting, number, FEW, FILL * setting.seconds)
    ]
    behind = backlog_of(setting, HELD_A_SECOND * setting.seconds)

    async def pause(app: Fairlane) -> None:
        subject = Subject(Kind.TASK, PAUSED)
        request = HoldRequest(scope=Scope.all(), subject=subject, who="bench", reason="to measure beside it")
        await app.client.store.policies.pause(request)

    alone = await stage.play("alone", arrivals)
    gate = await stage.play("full gate", arrivals, ahead=[Arrival(0, "busy", behind, 0, GATED)])
    paused = await stage.play(
        "paused task", arrivals, ahead=[Arrival(0, "busy", behind, 0, PAUSED)], prepare=pause
    )
    return Round(
        {
            **in_ms(alone.figures.waits(), "p95", before="alone "),
            **in_ms(gate.figures.waits(), "p95", before="full gate "),
            **in_ms(paused.figures.waits(), "p95", before="paused task "),
        },
        stage.checks,
    )


def _held_goals(medians: Medians) -> dict[str, Goal]:
    goal = near_alone(medians, "p95", 1.5, 20)
    return {"full gate p95": goal, "paused task p95": goal}


NEIGHBOURS: Final = (
    Scenario("flood", _flood, _flood_goals),
    Scenario("names", _names, _flood_goals),
    Scenario("headroom", _headroom, _headroom_goals),
    Scenario("held", _held, _held_goals),
)
