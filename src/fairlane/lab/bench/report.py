"""The report of a benchmark: figures with spread and goals, checks, and the machine.

The fields of these classes are the keys of `--json`; docs/reference/benchmark-report.md describes each.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from fairlane.lab.bench.charts import Chart

_WHOLE: Final = frozenset({"jobs/s", "µs/job", "jobs", "claims"})
"""Units that are shown without decimals."""


class Amount(NamedTuple):
    """One figure of one round; None if its conditions were not met, so that no number would be true."""

    value: float | None
    unit: str


def ratio(one: Amount, other: Amount) -> Amount:
    """Divide a figure by another of the same round; not valid if either is not, or the divisor is 0.

    >>> ratio(Amount(9, "ms"), Amount(2, "ms")).value, ratio(Amount(9, "ms"), Amount(None, "ms")).value
    (4.5, None)
    """
    if one.value is None or not other.value:
        return Amount(None, "×")
    return Amount(one.value / other.value, "×")


class Goal(msgspec.Struct, frozen=True):
    """A bound on a median, in words and as a number."""

    text: str
    limit: float
    is_least: bool = False

    def is_met(self, value: float | None) -> bool:
        """Whether a value is within the bound; None is not.

        >>> Goal("at most 10 ms", 10).is_met(9.5), Goal("at least 0.99", 0.99, is_least=True).is_met(0.5)
        (True, False)
        """
        if value is None:
            return False
        return value >= self.limit if self.is_least else value <= self.limit


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure over all rounds. `met` is None if there is no goal.

    A round without a valid value counts as the worst in the median, which is None if most have none.
    """

    scenario: str
    name: str
    unit: str
    median: float | None
    low: float | None
    high: float | None
    values: tuple[float | None, ...]
    goal: Goal | None = None
    met: bool | None = None


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Whether one run kept Fairlane's promises.

    `history` is the number of jobs in history, and must equal `expected`. `verdict` is the history checker's
    text; None if the run had no ledger.
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


class RoundResult(msgspec.Struct, frozen=True):
    """The results of one round of a scenario."""

    amounts: Mapping[str, Amount]
    checks: Sequence[Check] = ()
    chart: Chart | None = None


Medians = Mapping[str, float]
"""The medians of a scenario's figures by name; NaN, which meets no bound, if not valid."""

Goals = Callable[[Medians], Mapping[str, Goal]]
"""Returns the goals of a scenario by figure name, from the medians of all its figures."""


def no_goals(_medians: Medians) -> Mapping[str, Goal]:
    """Set no goals: the figures are context."""
    return {}


def conclude(scenario: str, rounds: Sequence[RoundResult], goals: Goals = no_goals) -> list[Measure]:
    """Combine the rounds of a scenario: median, lowest, highest, and whether the goals are met.

    >>> (one,) = conclude("idle", [RoundResult({"p95": Amount(value, "ms")}) for value in (4, 9, 5)])
    >>> one.median, one.low, one.high, one.met
    (5, 4, 9, None)
    """
    names = list(rounds[0].amounts)
    values = {name: tuple(one.amounts[name].value for one in rounds) for name in names}
    medians = {name: median(found) for name, found in values.items()}
    bounds = goals({name: math.nan if value is None else value for name, value in medians.items()})
    return [
        Measure(
            scenario=scenario,
            name=name,
            unit=rounds[0].amounts[name].unit,
            median=medians[name],
            low=min((value for value in values[name] if value is not None), default=None),
            high=max((value for value in values[name] if value is not None), default=None),
            values=values[name],
            goal=bounds.get(name),
            met=bounds[name].is_met(medians[name]) if name in bounds else None,
        )
        for name in names
    ]


def median(values: Sequence[float | None]) -> float | None:
    """Return the median, counting invalid values as the worst; None if it is one of them.

    >>> median([4, None, 5]), median([4, None, None]), median([4, 8])
    (5, None, 6.0)
    """
    middle = statistics.median(math.inf if value is None else value for value in values)
    return None if math.isinf(middle) else middle


def show_number(value: float | None, unit: str) -> str:
    """Format a figure for people.

    >>> show_number(12_345.678, "jobs/s"), show_number(0.5, ""), show_number(None, "ms")
    ('12,346', '0.50', 'not valid')
    """
    return "not valid" if value is None else f"{value:,.{0 if unit in _WHOLE else 2}f}"
