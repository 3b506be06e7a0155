"""What a benchmark answers: medians, spread, goals, and keys that are all described."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlane.bench.fairness import SCENARIOS, near_alone
from fairlane.bench.report import Amount, Check, Goal, Measure, Report, Round, conclude
from fairlane.bench.scale import cases_of
from fairlane.bench.throughput import _goals as throughput_goals
from fairlane.cli import bench as cli_bench

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "benchmark-report.md"


def rounds(name: str, *values: float) -> list[Round]:
    """Give rounds with one figure each."""
    return [Round({name: Amount(value, "ms")}) for value in values]


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


def test_a_wait_may_be_a_factor_or_some_milliseconds_above_what_it_is_alone() -> None:
    """Whichever allows more: on a fast machine a factor would be too little to measure."""
    assert near_alone({"alone p99": 10}, "p99", 2, 50).limit == 60
    assert near_alone({"alone p99": 400}, "p99", 2, 50).limit == 800


def test_many_tenants_must_reach_half_of_one_tenants_rate_and_two_processes_cost_a_tenth_more() -> None:
    """The goals compare cases of the same round; the floor of a process holds for each."""
    goals = throughput_goals(
        {
            "1 process, 1 tenant: drained": 5_000,
            "1 process, 9 tenants: drained": 4_000,
            "2 processes, 1 tenant: drained": 1_500,
            "1 process, 1 tenant: processor": 200,
            "2 processes, 1 tenant: processor": 230,
        }
    )
    assert {name: (goal.limit, goal.is_least) for name, goal in goals.items()} == {
        "1 process, 1 tenant: drained": (1_000, True),
        "1 process, 9 tenants: drained": (2_500, True),
        "2 processes, 1 tenant: drained": (2_000, True),
        "2 processes, 1 tenant: processor": (pytest.approx(220), False),
    }


def test_sizes_in_any_order_give_the_smallest_case_first() -> None:
    """All others are compared with it."""
    assert cases_of((100, 10), (5_000, 50))[0] == cases_of((10, 100), (50, 5_000))[0]
    assert cases_of((10,), (50,))[0].name == "10 tenants, 50 jobs"


def test_the_command_offers_every_scenario_of_fairness() -> None:
    """The names are written down twice, so that help needs not load the benchmarks."""
    assert tuple(one.name for one in SCENARIOS) == cli_bench._SCENARIOS


@pytest.mark.parametrize("record", [Report, Measure, Goal, Check])
def test_every_key_of_the_report_is_described_and_no_other(record: type[msgspec.Struct]) -> None:
    """The page names the keys that `--json` has, in their order."""
    assert described(record.__name__.lower()) == list(record.__struct_fields__)


def described(section: str) -> list[Any]:
    """Read the keys of one table of the page."""
    sections = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    (text,) = [one for one in sections if f"`{section}`" in one.partition("\n")[0]]
    return re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
