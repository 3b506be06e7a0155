"""How long one enqueue takes, and how long a job waits for a worker, an idle or a half busy one."""

from __future__ import annotations

from bisect import bisect_right
from random import Random
from typing import Final, NamedTuple

from fairlane.bench.charts import Chart
from fairlane.bench.report import Amount, Goal, Goals, Medians, Round
from fairlane.bench.scenario import Outcome, Scenario, Setting, Stage, in_ms, measure
from fairlane.model.instants import SECOND
from fairlane.model.lifecycle import State
from fairlane.runtime.clock import MachineClock
from fairlane.stage.arrivals import Arrival
from fairlane.stage.figures import Figures
from fairlane.stage.plan import ASYNC, make_app, task_of
from fairlane.stage.run import Run

HALF_LOAD: Final = "pick-up at half load"

_TENANTS: Final = 10
_OFF: Final = 0.1
"""How far from the load that was asked for what came may be."""

_clock: Final = MachineClock()


async def latency(setting: Setting) -> Outcome:
    """Time single enqueues, then watch workers pick up jobs that come one by one."""
    most = asked_of(setting.place.scheme)
    scenarios = [
        Scenario("enqueue", _enqueue, _at_most("p99", most)),
        Scenario("idle pick-up", _idle, _at_most("p95", most)),
        Scenario(HALF_LOAD, _half_load),
    ]
    return await measure(setting, scenarios)


def asked_of(scheme: str) -> int:
    """Say how many milliseconds an enqueue and an idle pick-up may take; of Redis more is asked.

    >>> asked_of("postgresql"), asked_of("rediss"), asked_of("redis+sentinel")
    (10, 5, 5)
    """
    return 10 if scheme in {"sqlite", "postgresql", "postgres"} else 5


def _at_most(name: str, most: float) -> Goals:
    def goals(_: Medians) -> dict[str, Goal]:
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
    """Find out how much this machine sustains with somebody bringing it, then bring half as much.

    Both times the jobs are brought one by one by the same process, which has its part of the machine.
    """
    stage = Stage(setting, HALF_LOAD, number)
    at_start = [Arrival(0, f"t{job % _TENANTS}", 1, 0) for job in range(setting.jobs)]
    full = sustained((await stage.play("full load", at_start, at_once=1)).figures)
    half = full / 2
    draw = Random(setting.seed + number)  # noqa: S311 (as above)
    arrivals: list[Arrival] = []
    at = 0.0
    while not arrivals or at < setting.seconds:
        at += draw.expovariate(half)
        arrivals.append(Arrival(round(at * SECOND), f"t{len(arrivals) % _TENANTS}", 1, 0))
    run = await stage.play("half load", arrivals, at_once=1)
    came = load_of(run.figures, half)
    waits = in_ms(run.figures.waits())
    if not came.is_valid(setting.slots):
        waits = {cut: Amount(None, "ms") for cut in waits}
    amounts = {
        "full load, brought one by one": Amount(full, "jobs/s"),
        "brought": Amount(came.rate, "jobs/s"),
        "of the full load": Amount(100 * came.rate / full, "%"),
        "waiting in the last fifth": Amount(came.waiting, "jobs"),
        **waits,
    }
    return Round(amounts, stage.checks, _chart(HALF_LOAD, run))


class Load(NamedTuple):
    """What came a second, beside what should have, and how many waited in the last fifth of the time."""

    asked: float
    rate: float
    waiting: float

    def is_valid(self, slots: int) -> bool:
        """Whether it was the load that was asked for, and no backlog grew: at half load few ever wait.

        >>> [Load(500, *came).is_valid(slots=16) for came in ((495, 1.5), (300, 1.5), (495, 80))]
        [True, False, False]
        """
        return abs(self.rate / self.asked - 1) <= _OFF and self.waiting <= slots


def sustained(figures: Figures) -> float:
    """Give the jobs a second that ended while others were still being brought."""
    brought = [one.brought_at for one in figures.jobs.values()]
    first, last = min(brought), max(brought)
    ended = sum(first < (one.ended_at or 0) <= last for one in figures.jobs.values())
    return max(1, ended) * SECOND / max(1, last - first)


def load_of(figures: Figures, asked: float) -> Load:
    """See how many came a second, and how many waited on average when the jobs of the last fifth came."""
    jobs = sorted(figures.jobs.values(), key=lambda one: one.brought_at)
    first, last = jobs[0].brought_at, jobs[-1].brought_at
    starts = sorted(one.started_at or 0 for one in jobs)
    late = range(len(jobs) * 4 // 5, len(jobs))
    waiting = [at - bisect_right(starts, jobs[at].brought_at) for at in late]
    return Load(asked, (len(jobs) - 1) * SECOND / max(1, last - first), sum(waiting) / len(waiting))


def _chart(title: str, run: Run) -> Chart:
    points = [
        ((one.brought_at - run.began_at) / SECOND, one.wait / 1_000) for one in run.figures.jobs.values()
    ]
    return Chart(
        name=title.replace(" ", "-"), title=title, x="seconds", y="wait, ms", series={"all tenants": points}
    )
