"""The arithmetic behind the goals of fairness, on lists that can be checked by hand."""

from __future__ import annotations

import pytest

from fairlane.lab.bench.fairness.claimers import TimedClaim, empty_beside_backlog
from fairlane.lab.bench.fairness.shares import (
    busy,
    contest_end,
    dispatches,
    held_since,
    jain,
    least_share,
    overtaken_by,
    share_error,
    share_of_due,
    steady_rate,
)
from fairlane.lab.workload.stats import Interval, JobTimes, percentile
from fairlane.model.instants import SECOND

WEIGHTS = {"one": 1.0, "two": 2.0, "five": 5.0}
EXACT = ["one", "two", "two", *["five"] * 5]


@pytest.mark.parametrize(
    ("turns", "error"),
    [
        (EXACT * 250, 0),
        (["five"] * 1_000 + EXACT * 125, 3 / 8),  # the worst window counts, not the average
        (EXACT * 125 + ["one"] * 999, 0),  # what does not fill a window is no window
        (["one", "two"], 5 / 8),  # shorter than a window, all is the window
        ([], 1),
    ],
)
def test_the_share_error_is_that_of_the_worst_window(turns: list[str], error: float) -> None:
    """A tenant that is starved for a thousand turns was not served fairly."""
    assert share_error(turns, WEIGHTS) == pytest.approx(error)


@pytest.mark.parametrize(
    ("amounts", "index"), [([2, 2, 2, 2], 1), ([8, 0, 0, 0], 0.25), ([1, 3], 0.8), ([], 0), ([0, 0], 0)]
)
def test_jains_index_falls_from_one_as_shares_differ(amounts: list[float], index: float) -> None:
    """One for equal shares, one by the number of tenants if one has all."""
    assert jain(amounts) == pytest.approx(index)


def test_a_contest_ends_when_the_first_tenant_has_nothing_left() -> None:
    """What the others get after that harms nobody."""
    spans = [
        Interval("a", 10, 11),
        Interval("a", 40, 41),
        Interval("b", 30, 31),
        Interval("b", 20, 50),
    ]
    assert contest_end(spans) == 30
    assert dispatches(spans, contest_end(spans)) == ["a", "b", "b"]


def test_seconds_count_up_to_the_end_of_the_contest_only() -> None:
    """A long job is counted in part, one that began afterwards not at all."""
    spans = [
        Interval("long", 10, 350),
        Interval("short", 10, 20),
        Interval("short", 101, 111),
    ]
    assert busy(spans, until=100) == {"long": 90, "short": 10}


def test_a_tenant_that_gets_every_turn_among_two_has_twice_its_due() -> None:
    """And one that gets none has none of it."""
    jobs = [*(JobTimes("a", 0, 0, at) for at in (1, 2, 3, 4)), JobTimes("b", 0, 0, 9)]
    assert share_of_due(jobs, "a", until=4) == 2
    assert share_of_due(jobs, "b", until=4) == 0


def test_tenants_that_return_again_and_again_with_a_turn_each_starve_the_backlogged_one() -> None:
    """The figure must fall below its goal if those who drain and return are always served first."""
    returning = [JobTimes(f"r{at % 5}", at, at, at + 1) for at in range(0, 100, 2)]
    backlog = [JobTimes("noisy", 0, 0, at) for at in range(10, 100, 10)]
    assert share_of_due([*backlog, *returning], "noisy", until=100) < 0.5


def test_a_tenant_is_due_every_turn_at_which_it_is_alone() -> None:
    """A tenant without jobs cannot be served, so its turns do not count."""
    jobs = [JobTimes("a", 0, 0, 1), JobTimes("a", 0, 0, 2), JobTimes("b", 5, 5, 6), JobTimes("a", 0, 0, 9)]
    assert share_of_due(jobs, "a", until=9) == pytest.approx(3 / 3.5)


def test_the_rate_counts_from_when_the_last_worker_had_begun() -> None:
    """Otherwise the start-up of the second worker would count."""
    early = [(at * SECOND, (at + 1) * SECOND) for at in range(10)]
    late = [(6 * SECOND, 7 * SECOND), (9 * SECOND, 10 * SECOND)]
    assert steady_rate({"early": early}) == 1
    assert steady_rate({"early": early, "late": late}) == pytest.approx(6 / 4)
    assert steady_rate({}) == 0


RAISED = {"raised": 10.0, "steady": 1.0}
NEW = [*["raised"] * 10, "steady"] * 10
OLD = ["raised", "steady"] * 55


@pytest.mark.parametrize(
    ("turns", "since"),
    [
        (NEW * 3, 1),
        ([*OLD, *NEW, *NEW], 111),
        ([*NEW, *OLD, *NEW], 221),  # it must stay so
        ([*NEW, *OLD], None),
        (NEW[:-1], None),  # too few turns say nothing
        ([], None),
    ],
)
def test_a_new_share_holds_from_the_first_window_after_which_none_is_off(
    turns: list[str], since: int | None
) -> None:
    """One good stretch by chance is not yet the new share."""
    spans = [Interval(tenant, at, at + 1) for at, tenant in enumerate(turns, 1)]
    assert held_since(spans, RAISED, since=0, until=1_000) == since


def test_turns_before_a_change_and_after_the_contest_do_not_count_for_a_new_share() -> None:
    """Neither was shared by the new weights."""
    spans = [Interval(tenant, at, at + 1) for at, tenant in enumerate([*OLD, *NEW, *OLD])]
    assert held_since(spans, RAISED, since=109, until=219) == 110


@pytest.mark.parametrize(
    ("turns", "least"),
    [
        ([*["a"] * 9, "b"] * 20, 0.1),
        ([*["a"] * 9, "b"] * 10 + ["a"] * 50 + ["b"] * 50, 0.05),  # any hundred in a row, wherever they begin
        (["b"] * 99, 0),
    ],
)
def test_the_least_share_is_that_of_the_worst_hundred_in_a_row(turns: list[str], least: float) -> None:
    """A minimum share that is made up for afterwards was not held."""
    assert least_share(turns, "b", 100) == least


def test_a_low_job_is_overtaken_by_the_newest_that_started_before_it() -> None:
    """Those that came later and started later have taken nothing from it."""
    jobs = [
        JobTimes("low", 100, 100, 900),
        JobTimes("high", 50, 50, 200),
        JobTimes("high", 650, 650, 800),
        JobTimes("high", 700, 700, 901),
        JobTimes("high", 899, 899),
    ]
    assert overtaken_by(jobs, "low") == 550
    assert overtaken_by([JobTimes("low", 1, 1, 2), JobTimes("high", 3, 3, 4)], "low") == 0


@pytest.mark.parametrize(
    ("asked", "empty"),
    [
        ([TimedClaim(1, 2, 1), TimedClaim(3, 4, 0), TimedClaim(5, 6, 1)], 1),
        (
            [TimedClaim(1, 2, 1), TimedClaim(3, 6, 0), TimedClaim(5, 7, 1)],
            0,
        ),  # the other may have got the last one
        ([TimedClaim(1, 2, 1), TimedClaim(3, 4, 0), TimedClaim(5, 6, 0)], 0),
        ([TimedClaim(1, 2, 0), TimedClaim(1, 3, 0)], 0),
    ],
)
def test_a_claim_was_empty_beside_a_backlog_if_one_sent_after_its_answer_got_a_job(
    asked: list[TimedClaim], empty: int
) -> None:
    """That job was there all the time; what only overlaps proves nothing."""
    assert empty_beside_backlog(asked) == empty


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.95, 95), (0.99, 99), (1.0, 100)])
def test_a_percentile_is_a_value_that_was_seen(share: float, value: int) -> None:
    """Nearest rank: no value is made up between two."""
    assert percentile(list(range(100, 0, -1)), share) == value
