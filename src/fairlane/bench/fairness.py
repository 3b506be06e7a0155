"""Who waits for whom, and who gets how much: one noisy tenant, weights, long jobs, what is held.

Each scenario plays the same arrivals in several ways and compares those of one round. First in, first out is
the same list under one tenant.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from fairlane import Fairlane
from fairlane.bench.charts import Chart, Point
from fairlane.bench.report import Amount, Goal, Round
from fairlane.bench.scenario import TEN_MS, Outcome, Scenario, Setting, Stage, in_ms, measure
from fairlane.bench.shares import busy, contest_end, dispatches, jain, share_error, share_of_due
from fairlane.model.instants import SECOND, Micros
from fairlane.model.layers import Kind, Subject
from fairlane.model.scope import Scope
from fairlane.stage.arrivals import WORK, Arrival, now_and_then
from fairlane.stage.plan import GATED, PAUSED
from fairlane.stage.run import Run
from fairlane.store.contract.policies import HoldRequest

NOISY: Final = "noisy"
QUIET: Final = 50
FEW: Final = 10
NAMES: Final = 1_000
FILL: Final = 0.6
"""For how much of the time others come; the rest is for machines on which the backlog goes faster."""

WEIGHTS: Final = {"one": 1.0, "two": 2.0, "five": 5.0}
LONG: Final[Micros] = 340 * SECOND // 1_000
RETURNING: Final = 5
HELD_A_SECOND: Final = 1_000


async def fairness(setting: Setting, only: Sequence[str] = ()) -> Outcome:
    """Play the scenarios that are asked for, or all."""
    return await measure(setting, [one for one in SCENARIOS if not only or one.name in only])


def slots_of(setting: Setting) -> int:
    """Give the slots of all worker processes together."""
    return setting.slots * setting.processes[0]


def in_time(setting: Setting, lasts: Micros) -> int:
    """Give how many jobs of this length all slots could do in the time of a run."""
    return max(1, round(setting.seconds * slots_of(setting) * SECOND / lasts))


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


def near_alone(medians: Mapping[str, float], name: str, factor: float, more: float) -> Goal:
    """Let a wait be a few times, or a few milliseconds, more than what it is alone.

    >>> [near_alone({"alone p95": alone}, "p95", 1.5, 20).limit for alone in (4, 90)]
    [24, 135.0]
    """
    alone = medians[f"alone {name}"]
    text = f"at most {factor:g} × alone, or alone + {more:g} ms"
    return Goal(text, max(factor * alone, alone + more))


# ── one noisy tenant ─────────────────────────────────────────────────────────


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
        "still backlogged": Amount(_backlogged(fair, arrivals), ""),
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
        "still backlogged": Amount(_backlogged(fair, arrivals), ""),
    }
    return Round(amounts, stage.checks)


def _backlogged(run: Run, arrivals: Sequence[Arrival]) -> float:
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


def _flood_goals(medians: Mapping[str, float]) -> dict[str, Goal]:
    return {
        "fair p95": near_alone(medians, "p95", 1.5, 20),
        "fair p99": near_alone(medians, "p99", 2, 50),
        "still backlogged": Goal("1, else nothing was contested", 1, is_least=True),
    }


# ── shares ───────────────────────────────────────────────────────────────────


async def _weights(setting: Setting, number: int) -> Round:
    stage = Stage(setting, "weights", number)
    total, jobs = sum(WEIGHTS.values()), in_time(setting, TEN_MS)
    ahead = [
        Arrival(0, name, max(1, math.ceil(jobs * weight / total)), TEN_MS) for name, weight in WEIGHTS.items()
    ]

    async def weigh(app: Fairlane) -> None:
        for name, weight in WEIGHTS.items():
            await app.tenants.adeclare(name, weight=weight)

    run = await stage.play("all backlogged", [], ahead=ahead, prepare=weigh)
    spans = run.figures.handled()
    turns = dispatches(spans, contest_end(spans))
    got = Counter(turns)
    return Round(
        {
            "share error": Amount(100 * share_error(turns, WEIGHTS), "%"),
            "Jain's index": Amount(jain([got[name] / weight for name, weight in WEIGHTS.items()]), ""),
            "contested turns": Amount(len(turns), "jobs"),
        },
        stage.checks,
    )


def _weights_goals(_: Mapping[str, float]) -> dict[str, Goal]:
    return {
        "share error": Goal("at most 2 % in 1,000 turns", 2),
        "Jain's index": Goal("at least 0.99", 0.99, is_least=True),
    }


async def _seconds(setting: Setting, number: int) -> Round:
    stage = Stage(setting, "seconds", number)
    ahead = [
        Arrival(0, "long", max(1, in_time(setting, LONG) // 2), LONG, "long"),
        Arrival(0, "short", max(1, in_time(setting, TEN_MS) // 2), TEN_MS, "short"),
    ]
    amounts: dict[str, Amount] = {}
    for cost in ("jobs", "seconds"):
        run = await stage.play(f"cost in {cost}", [], ahead=ahead, cost=cost, tasks=("long", "short"))
        for what, spans in (("slots", run.figures.claimed()), ("handlers", run.figures.handled())):
            spent = busy(spans, contest_end(spans))
            off = abs(2 * spent.get("short", 0) / max(1, sum(spent.values())) - 1)
            amounts[f"off an equal share of {what}, cost in {cost}"] = Amount(100 * off, "%")
            amounts[f"contested by {what}, cost in {cost}"] = Amount(sum(spent.values()) / SECOND, "s")
    return Round(amounts, stage.checks)


def _seconds_goals(_: Mapping[str, float]) -> dict[str, Goal]:
    return {"off an equal share of slots, cost in seconds": Goal("at most 5 %", 5)}


async def _returning(setting: Setting, number: int) -> Round:
    """Let five tenants bring their share in small lots, again and again, beside one with a backlog."""
    stage = Stage(setting, "returning", number)
    draw = Random(setting.seed + number)  # noqa: S311 (a repeatable list, no secret)
    until, lot = math.ceil(FILL * setting.seconds * SECOND), setting.slots // 2 or 1
    every = math.ceil(lot * (RETURNING + 1) * TEN_MS / slots_of(setting))
    arrivals = [
        Arrival(at + draw.randrange(every), f"returning-{tenant}", lot, TEN_MS)
        for tenant in range(RETURNING)
        for at in range(0, until, every)
    ]
    run = await stage.play(
        "one backlogged", arrivals, ahead=[Arrival(0, NOISY, in_time(setting, TEN_MS), TEN_MS)]
    )
    share = share_of_due(run.figures.jobs.values(), NOISY, run.began_at + until)
    amounts = {
        "the backlogged one's share of its due": Amount(100 * share, "%"),
        "still backlogged": Amount(_backlogged(run, arrivals), ""),
    }
    return Round(amounts, stage.checks)


def _returning_goals(_: Mapping[str, float]) -> dict[str, Goal]:
    return {
        "the backlogged one's share of its due": Goal("at least 90 %", 90, is_least=True),
        "still backlogged": Goal("1, else nothing was contested", 1, is_least=True),
    }


# ── what order cannot do, and what must not stand in the way ─────────────────


async def _headroom(setting: Setting, number: int) -> Round:
    stage = Stage(setting, "headroom", number)
    long = math.ceil(setting.seconds * SECOND / 2)
    arrivals = quiet(setting, number, FEW, FILL * setting.seconds / 2)
    ahead = [Arrival(0, NOISY, slots_of(setting), long)]
    alone = await stage.play("alone", arrivals)
    without = await stage.play("headroom 0", arrivals, ahead=ahead)
    with_one = await stage.play("headroom 1", arrivals, ahead=ahead, headroom=1)
    amounts = {
        **in_ms(waits(alone), "p99", before="alone "),
        **in_ms(waits(without), "p99", before="headroom 0 "),
        **in_ms(waits(with_one), "p99", before="headroom 1 "),
    }
    return Round(amounts, stage.checks)


def _headroom_goals(medians: Mapping[str, float]) -> dict[str, Goal]:
    return {"headroom 1 p99": Goal("at most 2 × alone", 2 * medians["alone p99"])}


async def _held(setting: Setting, number: int) -> Round:
    """Let a tenant's other work go on beside what a gate or a pause keeps back."""
    stage = Stage(setting, "held", number)
    arrivals = [
        Arrival(one.at, "busy", 1, TEN_MS) for one in quiet(setting, number, FEW, FILL * setting.seconds)
    ]
    behind = max(1, math.ceil(HELD_A_SECOND * setting.seconds))

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


def _held_goals(medians: Mapping[str, float]) -> dict[str, Goal]:
    goal = near_alone(medians, "p95", 1.5, 20)
    return {"full gate p95": goal, "paused task p95": goal}


SCENARIOS: Final = (
    Scenario("flood", _flood, _flood_goals),
    Scenario("names", _names, _flood_goals),
    Scenario("weights", _weights, _weights_goals),
    Scenario("seconds", _seconds, _seconds_goals),
    Scenario("returning", _returning, _returning_goals),
    Scenario("headroom", _headroom, _headroom_goals),
    Scenario("held", _held, _held_goals),
)
