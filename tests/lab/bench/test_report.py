"""The report of a benchmark: medians, spread, goals, and keys that are all described."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlane.cli.commands import bench as cli_bench
from fairlane.lab.bench.environment import BenchEnvironment
from fairlane.lab.bench.fairness.load import near_alone
from fairlane.lab.bench.fairness.scenarios import SCENARIOS
from fairlane.lab.bench.report import Amount, Check, Goal, Measure, Report, RoundResult, conclude
from fairlane.lab.bench.scale import cases_of
from fairlane.lab.bench.scenario import BenchSettings
from fairlane.lab.bench.throughput import COSTS_MORE, KINDS, REACHES, compared
from fairlane.lab.bench.throughput import case_of as throughput_case
from fairlane.lab.bench.throughput import goals as throughput_goals

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "benchmark-report.md"


def rounds(name: str, *values: float | None) -> list[RoundResult]:
    """Return rounds with one figure each."""
    return [RoundResult({name: Amount(value, "ms")}) for value in values]


def test_a_figure_is_the_median_with_the_lowest_and_the_highest() -> None:
    """One bad round does not make the figure, and is not hidden."""
    (one,) = conclude("idle", rounds("p95", 5, 90, 4))
    assert (one.median, one.low, one.high, one.values) == (5, 4, 90, (5, 90, 4))
    assert (one.scenario, one.name, one.unit, one.goal, one.met) == ("idle", "p95", "ms", None, None)


@pytest.mark.parametrize(
    ("goal", "met"),
    [
        (Goal("", 5), True),
        (Goal("", 4.9), False),
        (Goal("", 5, is_least=True), True),
        (Goal("", 5.1, is_least=True), False),
    ],
)
def test_a_goal_is_met_by_the_median(goal: Goal, met: bool) -> None:
    """At the bound it is met."""
    (one,) = conclude("idle", rounds("p95", 5, 90, 4), lambda _: {"p95": goal})
    assert one.met is met


@pytest.mark.parametrize(
    ("values", "median", "low", "high", "met"),
    [
        ((4, None, 5), 5, 4, 5, True),
        ((4, None, None), None, 4, 4, False),
        ((None, None), None, None, None, False),
    ],
)
def test_a_round_without_a_valid_value_counts_as_the_worst(
    values: tuple[float | None, ...],
    median: float | None,
    low: float | None,
    high: float | None,
    met: bool,
) -> None:
    """What could not be measured meets no goal and gives no number."""
    (one,) = conclude("half", rounds("p95", *values), lambda _: {"p95": Goal("", 9)})
    assert (one.median, one.low, one.high, one.met) == (median, low, high, met)
    assert one.values == values


def test_a_figure_that_is_compared_with_one_that_is_not_valid_meets_no_goal() -> None:
    """An unknown bound is met by no value."""
    found = [RoundResult({"alone p95": Amount(None, "ms"), "fair p95": Amount(1, "ms")})]
    _, fair = conclude("flood", found, lambda medians: {"fair p95": near_alone(medians, "p95", 1.5, 20)})
    assert fair.met is False


def test_a_wait_may_be_a_factor_or_some_milliseconds_above_what_it_is_alone() -> None:
    """Whichever allows more: on a fast machine a factor would be too little to measure."""
    assert near_alone({"alone p99": 10}, "p99", 2, 50).limit == 60
    assert near_alone({"alone p99": 400}, "p99", 2, 50).limit == 800


def test_throughput_is_compared_within_each_round(tmp_path: Path) -> None:
    """What a second process costs a job, and what many tenants reach, against one of the same round."""
    settings = BenchSettings(
        environment=BenchEnvironment(tmp_path),
        say=print,
        rounds=1,
        seed=1,
        processes=(1, 2),
        tenants=(1, 9),
        jobs=9,
    )
    drained = {(1, 1): 5_000, (1, 9): 4_000, (2, 1): 8_000, (2, 9): 2_000}
    processor = {(1, 1): 200, (1, 9): 300, (2, 1): 230, (2, 9): 300}
    name = throughput_case
    amounts = {f"{name(*case)}: drained": Amount(value, "jobs/s") for case, value in drained.items()}
    amounts |= {f"{name(*case)}: processor": Amount(value, "µs/job") for case, value in processor.items()}
    ratios = {name: amount.value for name, amount in compared(settings, amounts).items()}
    assert ratios == {
        f"1 process, 9 tenants: {REACHES}": 0.8,
        f"2 processes, 1 tenant: {COSTS_MORE}": 1.15,
        f"2 processes, 9 tenants: {REACHES}": 0.25,
        f"2 processes, 9 tenants: {COSTS_MORE}": 1.0,
    }
    medians = {name: float(value) for name, value in ratios.items() if value is not None}
    goals = throughput_goals({**medians, "2 processes, 1 tenant: drained": 8_000})
    met = {name: goals[name].is_met(value) for name, value in ratios.items()}
    assert met == {
        f"1 process, 9 tenants: {REACHES}": True,
        f"2 processes, 1 tenant: {COSTS_MORE}": False,
        f"2 processes, 9 tenants: {REACHES}": False,
        f"2 processes, 9 tenants: {COSTS_MORE}": True,
    }
    floor = goals["2 processes, 1 tenant: drained"]
    assert (floor.limit, floor.is_least) == (2_000, True)


def test_sizes_in_any_order_give_the_smallest_case_first() -> None:
    """All others are compared with it."""
    assert cases_of((100, 10), (5_000, 50))[0] == cases_of((10, 100), (50, 5_000))[0]
    assert cases_of((10,), (50,))[0].name == "10 tenants, 50 jobs"


def test_the_command_offers_every_scenario() -> None:
    """The names are written down twice, so that help needs not load the benchmarks."""
    assert tuple(one.name for one in SCENARIOS) == cli_bench._SCENARIOS
    assert tuple(one.name for one in KINDS) == cli_bench._KINDS


@pytest.mark.parametrize("record", [Report, Measure, Goal, Check])
def test_every_key_of_the_report_is_described_and_no_other(record: type[msgspec.Struct]) -> None:
    """The page names the keys that `--json` has, in their order."""
    assert described(record.__name__.lower()) == list(record.__struct_fields__)


def described(section: str) -> list[Any]:
    """Return the keys of one table of the page."""
    sections = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    (text,) = [one for one in sections if f"`{section}`" in one.partition("\n")[0]]
    return re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
