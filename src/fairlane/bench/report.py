"""What a benchmark answers: figures with their spread and goals, checks, and on what all that was measured.

The fields of these records are the keys of `--json`; docs/reference/benchmark-report.md describes each.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from fairlane.bench.charts import Chart


class Amount(NamedTuple):
    """One figure of one round."""

    value: float
    unit: str


class Goal(msgspec.Struct, frozen=True):
    """A bound on a median: in words, and as a number."""

    text: str
    limit: float
    is_least: bool = False

    def is_met(self, value: float) -> bool:
        """Whether a value keeps the bound.

        >>> Goal("at most 10 ms", 10).is_met(9.5), Goal("at least 0.99", 0.99, is_least=True).is_met(0.5)
        (True, False)
        """
        return value >= self.limit if self.is_least else value <= self.limit


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure over all rounds. `met` is None where there is no goal."""

    scenario: str
    name: str
    unit: str
    median: float
    low: float
    high: float
    values: tuple[float, ...]
    goal: Goal | None = None
    met: bool | None = None


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Whether one run kept what Fairlane promises.

    `history` are the rows in history, and must be `expected`. `verdict` is what the history checker said of
    the ledger; None where no ledger was kept.
    """

    scenario: str
    case: str
    round: int
    jobs: int
    expected: int
    history: int
    verdict: str | None
    ok: bool


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One run of `fairlane bench`."""

    bench: str
    versions: Mapping[str, str]
    host: Mapping[str, str | int | float]
    store: Mapping[str, str]
    settings: Mapping[str, int | float | str | tuple[int, ...]]
    on: tuple[str, ...]
    measures: tuple[Measure, ...]
    checks: tuple[Check, ...]
    plots: tuple[str, ...]
    seconds: float
    ok: bool


class Round(msgspec.Struct, frozen=True):
    """What one round of a scenario gave."""

    amounts: Mapping[str, Amount]
    checks: Sequence[Check] = ()
    chart: Chart | None = None


Goals = Callable[[Mapping[str, float]], Mapping[str, Goal]]
"""Gives the goals of a scenario by the name of the figure, from the medians of all its figures."""


def no_goals(_medians: Mapping[str, float]) -> Mapping[str, Goal]:
    """Set no goals: the figures are context."""
    return {}


def conclude(scenario: str, rounds: Sequence[Round], goals: Goals = no_goals) -> list[Measure]:
    """Put the rounds of a scenario together: median, lowest, highest, and whether the goals are met.

    >>> (one,) = conclude("idle", [Round({"p95": Amount(value, "ms")}) for value in (4, 9, 5)])
    >>> one.median, one.low, one.high, one.met
    (5, 4, 9, None)
    """
    names = list(rounds[0].amounts)
    values = {name: tuple(one.amounts[name].value for one in rounds) for name in names}
    medians = {name: statistics.median(found) for name, found in values.items()}
    bounds = goals(medians)
    return [
        Measure(
            scenario=scenario,
            name=name,
            unit=rounds[0].amounts[name].unit,
            median=medians[name],
            low=min(values[name]),
            high=max(values[name]),
            values=values[name],
            goal=bounds.get(name),
            met=bounds[name].is_met(medians[name]) if name in bounds else None,
        )
        for name in names
    ]
