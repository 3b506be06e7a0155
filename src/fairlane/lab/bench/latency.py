"""Measure the duration of an enqueue, and a job's wait for an idle worker and for one at half load."""

from __future__ import annotations

from bisect import bisect_right
from random import Random
from typing import Final, NamedTuple

from fairlane.lab.bench.charts import Chart
from fairlane.lab.bench.report import Amount, Goal, Goals, Medians, RoundResult
from fairlane.lab.bench.scenario import BenchResult, BenchSettings, RoundRunner, Scenario, in_ms, measure
from fairlane.lab.workload.arrivals import Arrival
from fairlane.lab.workload.plan import ASYNC, make_app, task_of
from fairlane.lab.workload.run import WorkloadRun
from fairlane.lab.workload.stats import RunStats
from fairlane.model.instants import SECOND
from fairlane.model.lifecycle.states import State
from fairlane.runtime.clock import MachineClock

HALF_LOAD: Final = "pick-up at half load"

_TENANTS: Final = 10
_OFF: Final = 0.1
"""How far the actual load may be from the wanted one."""

_clock: Final = MachineClock()


async def latency(settings: BenchSettings) -> BenchResult:
    """Time single enqueues, then let workers pick up jobs that arrive one by one."""
    most = goal_ms(settings.environment.scheme)
    scenarios = [
        Scenario("enqueue", _enqueue, _at_most("p99", most)),
        Scenario("idle pick-up", _idle, _at_most("p95", most)),
        Scenario(HALF_LOAD, _half_load),
    ]
    return await measure(settings, scenarios)


def goal_ms(scheme: str) -> int:
    """Return the goal in milliseconds of an enqueue and an idle pick-up; Redis must be faster.

    >>> goal_ms("postgresql"), goal_ms("rediss"), goal_ms("redis+sentinel")
    (10, 5, 5)
    """
    return 10 if scheme in {"sqlite", "postgresql", "postgres"} else 5


def _at_most(name: str, most: float) -> Goals:
    def goals(_: Medians) -> dict[str, Goal]:
        return {name: Goal(f"at most {most:g} ms", most)}

    return goals


async def _enqueue(settings: BenchSettings, number: int) -> RoundResult:
    """Enqueue jobs one at a time, each acknowledged on its own."""
    runner = RoundRunner(settings, "enqueue", number)
    times: list[int] = []
    async with settings.environment.run() as plan, make_app(plan) as app:
        await app.client.store.upkeep.migrate()
        task = task_of(app, ASYNC)
        for job in range(settings.jobs):
            before = _clock.elapsed()
            await task.using(tenant=f"t{job % _TENANTS}").aenqueue()
            times.append(_clock.elapsed() - before)
        counts = await app.jobs.acount(queue=plan.queue)
    all_are_there = counts[State.READY] == settings.jobs
    runner.note("none ran", settings.jobs, 0, counts[State.SUCCEEDED], None, is_kept=all_are_there)
    return RoundResult(in_ms(times), runner.checks)


async def _idle(settings: BenchSettings, number: int) -> RoundResult:
    """Enqueue single jobs, far enough apart that the previous one has ended."""
    draw = Random(settings.seed + number)  # noqa: S311 (a repeatable list, no secret)
    arrivals: list[Arrival] = []
    at = 0.0
    while not arrivals or at < settings.seconds:
        at += draw.uniform(0.03, 0.07)
        arrivals.append(Arrival(round(at * SECOND), f"t{len(arrivals) % _TENANTS}", 1, 0))
    runner = RoundRunner(settings, "idle pick-up", number)
    run = await runner.execute("idle", arrivals)
    return RoundResult(in_ms(run.stats.waits()), runner.checks, _chart("idle pick-up", run))


async def _half_load(settings: BenchSettings, number: int) -> RoundResult:
    """Find the highest load that this machine sustains, then run half of it.

    Both times one process enqueues the jobs one by one; it uses its part of the machine too.
    """
    runner = RoundRunner(settings, HALF_LOAD, number)
    at_start = [Arrival(0, f"t{job % _TENANTS}", 1, 0) for job in range(settings.jobs)]
    full = sustained((await runner.execute("full load", at_start, batch_size=1)).stats)
    half = full / 2
    draw = Random(settings.seed + number)  # noqa: S311 (as above)
    arrivals: list[Arrival] = []
    at = 0.0
    while not arrivals or at < settings.seconds:
        at += draw.expovariate(half)
        arrivals.append(Arrival(round(at * SECOND), f"t{len(arrivals) % _TENANTS}", 1, 0))
    run = await runner.execute("half load", arrivals, batch_size=1)
    came = load_of(run.stats, half)
    waits = in_ms(run.stats.waits())
    if not came.is_valid(settings.slots):
        waits = {cut: Amount(None, "ms") for cut in waits}
    amounts = {
        "full load, brought one by one": Amount(full, "jobs/s"),
        "brought": Amount(came.rate, "jobs/s"),
        "of the full load": Amount(100 * came.rate / full, "%"),
        "waiting in the last fifth": Amount(came.waiting, "jobs"),
        **waits,
    }
    return RoundResult(amounts, runner.checks, _chart(HALF_LOAD, run))


class LoadSample(NamedTuple):
    """The wanted and the actual arrival rate, and how many jobs waited in the last fifth of the time."""

    asked: float
    rate: float
    waiting: float

    def is_valid(self, slots: int) -> bool:
        """Whether the load was as wanted and no backlog grew: at half load few jobs wait.

        >>> [LoadSample(500, *came).is_valid(slots=16) for came in ((495, 1.5), (300, 1.5), (495, 80))]
        [True, False, False]
        """
        return abs(self.rate / self.asked - 1) <= _OFF and self.waiting <= slots


def sustained(stats: RunStats) -> float:
    """Return the jobs per second that ended while others were still being enqueued."""
    brought = [one.sent_at for one in stats.jobs.values()]
    first, last = min(brought), max(brought)
    ended = sum(first < (one.ended_at or 0) <= last for one in stats.jobs.values())
    return max(1, ended) * SECOND / max(1, last - first)


def load_of(stats: RunStats, asked: float) -> LoadSample:
    """Return the arrival rate, and how many jobs waited on average when those of the last fifth arrived."""
    jobs = sorted(stats.jobs.values(), key=lambda one: one.sent_at)
    first, last = jobs[0].sent_at, jobs[-1].sent_at
    starts = sorted(one.started_at or 0 for one in jobs)
    late = range(len(jobs) * 4 // 5, len(jobs))
    waiting = [at - bisect_right(starts, jobs[at].sent_at) for at in late]
    return LoadSample(asked, (len(jobs) - 1) * SECOND / max(1, last - first), sum(waiting) / len(waiting))


def _chart(title: str, run: WorkloadRun) -> Chart:
    points = [((one.sent_at - run.began_at) / SECOND, one.wait / 1_000) for one in run.stats.jobs.values()]
    return Chart(
        name=title.replace(" ", "-"), title=title, x="seconds", y="wait, ms", series={"all tenants": points}
    )
