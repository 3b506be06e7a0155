"""A thing to measure, how much of it, and how its rounds are taken. Knows no store's verbs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from fairlane.bench.charts import Chart
from fairlane.bench.place import Place
from fairlane.bench.report import Amount, Check, Goals, Measure, Round, conclude, no_goals
from fairlane.model.instants import SECOND, Micros
from fairlane.model.lifecycle import Home
from fairlane.stage.arrivals import Arrival
from fairlane.stage.figures import percentile
from fairlane.stage.plan import HELD
from fairlane.stage.run import BATCH, Change, Prepare, Run

Say = Callable[[str], None]

TEN_MS: Final[Micros] = SECOND // 100
QUANTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """How much is measured, where, and whom to tell."""

    place: Place
    say: Say
    rounds: int
    seed: int
    seconds: float = 10.0
    jobs: int = 20_000
    processes: tuple[int, ...] = (1,)
    slots: int = 16
    tenants: tuple[int, ...] = (1, 1_000, 100_000)
    backlog: tuple[int, ...] = ()

    @property
    def most(self) -> Micros:
        """How long one run may take: what it should on a machine many times slower, and then it is ended."""
        return round((60 + 20 * self.seconds + self.jobs / 50 + sum(self.backlog) / 500) * SECOND)


class Outcome(msgspec.Struct):
    """What scenarios have given so far."""

    measures: list[Measure] = []
    checks: list[Check] = []
    charts: list[Chart] = []


class Scenario(msgspec.Struct, frozen=True):
    """One thing to measure: played once a round, with a number for the round."""

    name: str
    play: Callable[[Setting, int], Awaitable[Round]]
    goals: Goals = no_goals


async def measure(setting: Setting, scenarios: Sequence[Scenario]) -> Outcome:
    """Play every scenario once a round, in turn, so that a busy hour of the machine hits all alike."""
    found: dict[str, list[Round]] = {one.name: [] for one in scenarios}
    for number in range(setting.rounds):
        for one in scenarios:
            setting.say(f"round {number + 1} of {setting.rounds}: {one.name}")
            found[one.name].append(await one.play(setting, number))
    outcome = Outcome()
    for one in scenarios:
        rounds = found[one.name]
        outcome.measures += conclude(one.name, rounds, one.goals)
        outcome.checks += [check for each in rounds for check in each.checks]
        outcome.charts += [each.chart for each in rounds[-1:] if each.chart is not None]
    return outcome


class Stage:
    """The runs of one round of a scenario, each in a store or queue of its own, and what their checks say."""

    def __init__(self, setting: Setting, scenario: str, number: int) -> None:
        self.checks: list[Check] = []
        self._setting = setting
        self._scenario = scenario
        self._round = number + 1

    async def play(
        self,
        case: str,
        arrivals: Sequence[Arrival],
        *,
        ahead: Sequence[Arrival] = (),
        tenant: str | None = None,
        prepare: Prepare | None = None,
        change: Change | None = None,
        lasts: Micros | None = None,
        at_once: int = BATCH,
        **plan: object,
    ) -> Run:
        """Play a run with the history checker behind it; its plan has what is given besides.

        All that was brought must have ended in history, but what is held; with `lasts`, all that handlers
        have ended.
        """
        setting = self._setting
        async with setting.place.run(slots=setting.slots, **plan) as planned:
            run = Run(
                planned,
                processes=setting.processes[0],
                at_most=setting.most,
                tenant=tenant,
                at_once=at_once,
            )
            verdict = await run.play(arrivals, ahead=ahead, prepare=prepare, change=change, lasts=lasts)
        brought = sum(one.jobs for one in (*arrivals, *ahead) if one.task not in HELD)
        expected = brought if lasts is None else run.figures.ended
        history = run.homes[Home.HISTORY]
        self.note(case, len(run.figures.jobs), expected, history, str(verdict), is_kept=verdict.ok)
        return run

    def note(
        self, case: str, jobs: int, expected: int, history: int, verdict: str | None, *, is_kept: bool = True
    ) -> None:
        """Add what one run's check said."""
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
    """Give quantiles of microseconds as milliseconds, named with what stands before.

    >>> in_ms([2_000, 1_000], "p50", before="fair ")
    {'fair p50': Amount(value=1.0, unit='ms')}
    """
    return {
        f"{before}{cut}": Amount(percentile(waits, QUANTILES[cut]) / 1_000, "ms") for cut in cuts or QUANTILES
    }
