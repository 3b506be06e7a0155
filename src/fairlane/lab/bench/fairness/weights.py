"""Scenarios of shares: weights, also changed at run time, long jobs against short ones, returning tenants."""

from __future__ import annotations

import math
from collections import Counter
from random import Random
from typing import Final

from fairlane import Fairlane
from fairlane.lab.bench.fairness.load import (
    CONTESTED,
    FILL,
    NOISY,
    backlog_of,
    backlogged,
    jobs_in_run,
    slots_of,
)
from fairlane.lab.bench.fairness.shares import (
    busy,
    contest_end,
    dispatches,
    held_since,
    jain,
    share_error,
    share_of_due,
)
from fairlane.lab.bench.report import Amount, Goal, Medians, RoundResult
from fairlane.lab.bench.scenario import TEN_MS, BenchSettings, RoundRunner, Scenario
from fairlane.lab.workload.arrivals import Arrival
from fairlane.lab.workload.run import ScheduledChange
from fairlane.model.instants import SECOND, Micros

WEIGHTS: Final = {"one": 1.0, "two": 2.0, "five": 5.0}
RAISED: Final = {"raised": 10.0, "steady": 1.0}
LONG: Final[Micros] = 340 * SECOND // 1_000
RETURNING: Final = 5


async def _weights(settings: BenchSettings, number: int) -> RoundResult:
    runner = RoundRunner(settings, "weights", number)
    total, jobs = sum(WEIGHTS.values()), jobs_in_run(settings, TEN_MS)
    backlog = [
        Arrival(0, name, max(1, math.ceil(jobs * weight / total)), TEN_MS) for name, weight in WEIGHTS.items()
    ]

    async def weigh(app: Fairlane) -> None:
        for name, weight in WEIGHTS.items():
            await app.tenants.adeclare(name, weight=weight)

    run = await runner.execute("all backlogged", [], backlog=backlog, prepare=weigh)
    spans = run.stats.handled()
    turns = dispatches(spans, contest_end(spans))
    got = Counter(turns)
    return RoundResult(
        {
            "share error": Amount(100 * share_error(turns, WEIGHTS), "%"),
            "Jain's index": Amount(jain([got[name] / weight for name, weight in WEIGHTS.items()]), ""),
            "contested turns": Amount(len(turns), "jobs"),
        },
        runner.checks,
    )


def _weights_goals(_: Medians) -> dict[str, Goal]:
    return {
        "share error": Goal("at most 2 % in 1,000 turns", 2),
        "Jain's index": Goal("at least 0.99", 0.99, is_least=True),
    }


async def _seconds(settings: BenchSettings, number: int) -> RoundResult:
    runner = RoundRunner(settings, "seconds", number)
    backlog = [
        Arrival(0, "long", max(1, jobs_in_run(settings, LONG) // 2), LONG, "long"),
        Arrival(0, "short", max(1, jobs_in_run(settings, TEN_MS) // 2), TEN_MS, "short"),
    ]
    amounts: dict[str, Amount] = {}
    for cost in ("jobs", "seconds"):
        run = await runner.execute(f"cost in {cost}", [], backlog=backlog, cost=cost, tasks=("long", "short"))
        for what, spans in (("slots", run.stats.claimed()), ("handlers", run.stats.handled())):
            spent = busy(spans, contest_end(spans))
            off = abs(2 * spent.get("short", 0) / max(1, sum(spent.values())) - 1)
            amounts[f"off an equal share of {what}, cost in {cost}"] = Amount(100 * off, "%")
            amounts[f"contested by {what}, cost in {cost}"] = Amount(sum(spent.values()) / SECOND, "s")
    return RoundResult(amounts, runner.checks)


def _seconds_goals(_: Medians) -> dict[str, Goal]:
    return {"off an equal share of slots, cost in seconds": Goal("at most 5 %", 5)}


async def _returning(settings: BenchSettings, number: int) -> RoundResult:
    """Let five tenants enqueue their share in small batches, again and again, beside one with a backlog."""
    runner = RoundRunner(settings, "returning", number)
    draw = Random(settings.seed + number)  # noqa: S311 (a repeatable list, no secret)
    until, lot = math.ceil(FILL * settings.seconds * SECOND), settings.slots // 2 or 1
    every = math.ceil(lot * (RETURNING + 1) * TEN_MS / slots_of(settings))
    arrivals = [
        Arrival(at + draw.randrange(every), f"returning-{tenant}", lot, TEN_MS)
        for tenant in range(RETURNING)
        for at in range(0, until, every)
    ]
    run = await runner.execute(
        "one backlogged", arrivals, backlog=[Arrival(0, NOISY, jobs_in_run(settings, TEN_MS), TEN_MS)]
    )
    share = share_of_due(run.stats.jobs.values(), NOISY, run.began_at + until)
    amounts = {
        "the backlogged one's share of its due": Amount(100 * share, "%"),
        "still backlogged": Amount(backlogged(run, arrivals), ""),
    }
    return RoundResult(amounts, runner.checks)


def _returning_goals(_: Medians) -> dict[str, Goal]:
    return {
        "the backlogged one's share of its due": Goal("at least 90 %", 90, is_least=True),
        "still backlogged": CONTESTED,
    }


async def _reweighed(settings: BenchSettings, number: int) -> RoundResult:
    """Give one of two backlogged tenants ten times its weight, and measure when that takes effect."""
    runner = RoundRunner(settings, "reweighed", number)
    jobs = backlog_of(settings, 2 * jobs_in_run(settings, TEN_MS))
    stop_after = math.ceil(settings.seconds * SECOND)

    async def level(app: Fairlane) -> None:
        # In a store that rounds share, the previous round has left its weight.
        await app.tenants.aset("raised", weight=1.0, note="as before")

    async def raise_one(app: Fairlane) -> None:
        await app.tenants.aset("raised", weight=RAISED["raised"], note="to measure what comes of it")

    run = await runner.execute(
        "raised while it runs",
        [],
        backlog=[Arrival(0, name, max(1, jobs // 2), TEN_MS) for name in RAISED],
        prepare=level,
        change=ScheduledChange(stop_after * 2 // 5, raise_one),
        stop_after=stop_after,
    )
    spans = run.stats.handled()
    changed_at = run.changed_at or 0
    before = dispatches(spans, min(changed_at, contest_end(spans)))
    since = held_since(spans, RAISED, changed_at, contest_end(spans))
    return RoundResult(
        {
            "new share after": Amount(None if since is None else (since - changed_at) / SECOND, "s"),
            "share error before": Amount(100 * share_error(before, dict.fromkeys(RAISED, 1.0)), "%"),
            "backlog": Amount(jobs, "jobs"),
        },
        runner.checks,
    )


def _reweighed_goals(_: Medians) -> dict[str, Goal]:
    return {"new share after": Goal("at most 1 s", 1)}


TURNS: Final = (
    Scenario("weights", _weights, _weights_goals),
    Scenario("seconds", _seconds, _seconds_goals),
    Scenario("returning", _returning, _returning_goals),
    Scenario("reweighed", _reweighed, _reweighed_goals),
)
