"""How long one enqueue takes, and how long a job waits for a worker, an idle or a half busy one."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Final

from fairlane.bench.charts import Chart
from fairlane.bench.report import Amount, Goal, Goals, Round
from fairlane.bench.scenario import Outcome, Scenario, Setting, Stage, in_ms, measure
from fairlane.bench.shares import steady_rate
from fairlane.model.instants import SECOND
from fairlane.model.lifecycle import State
from fairlane.runtime.clock import MachineClock
from fairlane.stage.arrivals import Arrival
from fairlane.stage.plan import ASYNC, make_app, task_of
from fairlane.stage.run import Run

_TENANTS: Final = 10
_clock: Final = MachineClock()


async def latency(setting: Setting) -> Outcome:
    """Time single enqueues, then watch workers pick up jobs that come one by one."""
    most = 5 if setting.place.scheme in {"redis", "valkey"} else 10
    scenarios = [
        Scenario("enqueue", _enqueue, _at_most("p99", most)),
        Scenario("idle pick-up", _idle, _at_most("p95", most)),
        Scenario("pick-up at half load", _half_load),
    ]
    return await measure(setting, scenarios)


def _at_most(name: str, most: float) -> Goals:
    def goals(_: Mapping[str, float]) -> dict[str, Goal]:
        return {name: Goal(f"at most {most:g} ms", most)}

    return goals


async def _enqueue(setting: Setting, number: int) -> Round:
    """Enqueue one job after the other, each with an answer of its own."""
    stage = Stage(setting, "enqueue", number)
    times: list[int] = []
    async with setting.place.run() as plan, make_app(plan) as app:
        await app.client.store.upkeep.migrate()
        task = task_of(app, ASYNC)
        for job in range(setting.jobs):
            before = _clock.elapsed()
            await task.using(tenant=f"t{job % _TENANTS}").aenqueue()
            times.append(_clock.elapsed() - before)
        counts = await app.jobs.acount(queue=plan.queue)
    all_are_there = counts[State.READY] == setting.jobs
    stage.note("none ran", setting.jobs, 0, counts[State.SUCCEEDED], None, is_kept=all_are_there)
    return Round(in_ms(times), stage.checks)


async def _idle(setting: Setting, number: int) -> Round:
    """Bring single jobs, far enough apart that the one before has ended."""
    draw = Random(setting.seed + number)  # noqa: S311 (a repeatable list, no secret)
    arrivals: list[Arrival] = []
    at = 0.0
    while not arrivals or at < setting.seconds:
        at += draw.uniform(0.03, 0.07)
        arrivals.append(Arrival(round(at * SECOND), f"t{len(arrivals) % _TENANTS}", 1, 0))
    stage = Stage(setting, "idle pick-up", number)
    run = await stage.play("idle", arrivals)
    return Round(in_ms(run.figures.waits()), stage.checks, _chart("idle pick-up", run))


async def _half_load(setting: Setting, number: int) -> Round:
    """Find out how much the workers can do, then bring half as much, at random moments."""
    stage = Stage(setting, "pick-up at half load", number)
    full = await stage.play("full load", [], ahead=[Arrival(0, "t0", setting.jobs, 0)])
    spans = [(span.start, span.end) for span in full.figures.claimed()]
    rate = steady_rate({"all": spans}) / 2
    draw = Random(setting.seed + number)  # noqa: S311 (as above)
    arrivals: list[Arrival] = []
    at = 0.0
    while not arrivals or at < setting.seconds:
        at += draw.expovariate(rate)
        arrivals.append(Arrival(round(at * SECOND), f"t{len(arrivals) % _TENANTS}", 1, 0))
    run = await stage.play("half load", arrivals)
    amounts = {"load": Amount(rate, "jobs/s"), **in_ms(run.figures.waits())}
    return Round(amounts, stage.checks, _chart("pick-up at half load", run))


def _chart(title: str, run: Run) -> Chart:
    points = [
        ((one.brought_at - run.began_at) / SECOND, one.wait / 1_000) for one in run.figures.jobs.values()
    ]
    return Chart(
        name=title.replace(" ", "-"), title=title, x="seconds", y="wait, ms", series={"all tenants": points}
    )
