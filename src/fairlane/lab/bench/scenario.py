"""What a scenario is, its settings, and how its rounds are run. Knows no store's verbs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from fairlane.lab.bench.charts import Chart
from fairlane.lab.bench.environment import BenchEnvironment
from fairlane.lab.bench.report import Amount, Check, Goals, Measure, RoundResult, conclude, no_goals
from fairlane.lab.workload.arrivals import Arrival
from fairlane.lab.workload.plan import HELD
from fairlane.lab.workload.run import BATCH, Prepare, ScheduledChange, WorkloadRun
from fairlane.lab.workload.stats import percentile
from fairlane.model.instants import SECOND, Micros
from fairlane.model.lifecycle.states import Home

PrintLine = Callable[[str], None]

TEN_MS: Final[Micros] = SECOND // 100
QUANTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class BenchSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How much to measure, where, and how to report progress."""

    environment: BenchEnvironment
    say: PrintLine
    rounds: int
    seed: int
    seconds: float = 10.0
    jobs: int = 20_000
    processes: tuple[int, ...] = (1,)
    slots: int = 16
    tenants: tuple[int, ...] = (1, 1_000, 100_000)
    backlog: tuple[int, ...] = ()

    @property
    def run_timeout(self) -> Micros:
        """The timeout of one run: enough for a machine that is many times slower."""
        return round((60 + 20 * self.seconds + self.jobs / 50 + sum(self.backlog) / 500) * SECOND)


class BenchResult(msgspec.Struct):
    """The results of some scenarios."""

    measures: list[Measure] = []
    checks: list[Check] = []
    charts: list[Chart] = []


class Scenario(msgspec.Struct, frozen=True):
    """One thing to measure. `execute` runs one round, given its number."""

    name: str
    execute: Callable[[BenchSettings, int], Awaitable[RoundResult]]
    goals: Goals = no_goals


async def measure(settings: BenchSettings, scenarios: Sequence[Scenario]) -> BenchResult:
    """Run every scenario once per round, in turn, so that noise of the machine affects all alike."""
    found: dict[str, list[RoundResult]] = {one.name: [] for one in scenarios}
    for number in range(settings.rounds):
        for one in scenarios:
            settings.say(f"round {number + 1} of {settings.rounds}: {one.name}")
            found[one.name].append(await one.execute(settings, number))
    result = BenchResult()
    for one in scenarios:
        rounds = found[one.name]
        result.measures += conclude(one.name, rounds, one.goals)
        result.checks += [check for each in rounds for check in each.checks]
        result.charts += [each.chart for each in rounds[-1:] if each.chart is not None]
    return result


class RoundRunner:
    """Does the runs of one round of a scenario, each in its own file or queue, and collects their checks."""

    def __init__(self, settings: BenchSettings, scenario: str, number: int) -> None:
        self.checks: list[Check] = []
        self._setting = settings
        self._scenario = scenario
        self._round = number + 1

    async def execute(
        self,
        case: str,
        arrivals: Sequence[Arrival],
        *,
        backlog: Sequence[Arrival] = (),
        tenant: str | None = None,
        prepare: Prepare | None = None,
        change: ScheduledChange | None = None,
        stop_after: Micros | None = None,
        batch_size: int = BATCH,
        **plan: object,
    ) -> WorkloadRun:
        """Do one run and check its history; further arguments go to its plan.

        All enqueued jobs must be in history at the end, except held ones; with `stop_after`, all jobs whose
        handler has ended.
        """
        settings = self._setting
        async with settings.environment.run(slots=settings.slots, **plan) as planned:
            run = WorkloadRun(
                planned,
                processes=settings.processes[0],
                timeout=settings.run_timeout,
                tenant=tenant,
                batch_size=batch_size,
            )
            verdict = await run.execute(
                arrivals, backlog=backlog, prepare=prepare, change=change, stop_after=stop_after
            )
        enqueued = sum(one.jobs for one in (*arrivals, *backlog) if one.task not in HELD)
        expected = enqueued if stop_after is None else run.stats.ended
        history = run.homes[Home.HISTORY]
        self.note(case, len(run.stats.jobs), expected, history, str(verdict), is_kept=verdict.ok)
        return run

    def note(
        self, case: str, jobs: int, expected: int, history: int, verdict: str | None, *, is_kept: bool = True
    ) -> None:
        """Add the check of one run."""
        self.checks.append(
            Check(
                scenario=self._scenario,
                case=case,
                round=self._round,
                jobs=jobs,
                expected=expected,
                history=history,
                verdict=verdict,
                ok=is_kept and history == expected,
            )
        )


def in_ms(waits: Sequence[float], *cuts: str, before: str = "") -> dict[str, Amount]:
    """Return quantiles of microseconds in milliseconds, with `before` in front of their names.

    >>> in_ms([2_000, 1_000], "p50", before="fair ")
    {'fair p50': Amount(value=1.0, unit='ms')}
    """
    return {
        f"{before}{cut}": Amount(percentile(waits, QUANTILES[cut]) / 1_000, "ms") for cut in cuts or QUANTILES
    }
