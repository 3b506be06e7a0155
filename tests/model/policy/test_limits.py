"""Rates are exact: never more starts than promised, and the next one exactly when it was announced (S44)."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.model.instants import DAY, HOUR, MINUTE, SECOND
from fairlane.model.policy.limits import NO_LIMITS, Limits, Rate, is_below

NOW = 1_772_366_400 * SECOND

rates = st.builds(
    Rate,
    limit=st.integers(1, 200),
    per=st.sampled_from(["second", "minute", "hour", "day"]),
    burst=st.integers(1, 30),
)


def greedy(rate: Rate, jobs: int, now: int = NOW) -> list[int]:
    """Start so many jobs as early as the rate allows; return the instants."""
    next_allowed_at, starts = 0, []
    for _ in range(jobs):
        now = max(now, rate.free_at(next_allowed_at))
        assert rate.allowed_starts(next_allowed_at, now) > 0
        next_allowed_at = rate.start(next_allowed_at, now)
        starts.append(now)
    return starts


def most_within(starts: list[int], window: int) -> int:
    """Count the fullest window that is open at its end."""
    return max(sum(first <= one < first + window for one in starts) for first in starts)


@pytest.mark.parametrize(
    ("rate", "interval"),
    [
        (Rate(50), 1_200_000),
        (Rate(50, "minute"), 1_200_000),
        (Rate(10, "second"), 100_000),
        (Rate(3, "second"), 333_334),
        (Rate(7, "minute"), 8_571_429),
        (Rate(1, "day"), DAY),
        (Rate(1, "hour"), HOUR),
        (Rate(7, "day"), 12_342_857_143),
        (Rate(10**6, "second"), 1),
        (Rate(10**9, "second"), 1),
    ],
)
def test_starts_are_spaced_by_the_period_over_the_limit_rounded_up(rate: Rate, interval: int) -> None:
    """Rounding down would allow one more than the limit."""
    assert rate.interval == interval


def test_fifty_a_minute_starts_at_most_fifty_of_sixty_in_any_minute() -> None:
    """Seed A's bulk queue, evenly spaced."""
    starts = greedy(Rate(50, "minute"), 60)
    assert most_within(starts, MINUTE) == 50
    assert {late - early for early, late in pairwise(starts)} == {1_200_000}


def test_ten_a_second_with_a_burst_of_twenty_lets_twenty_go_at_once() -> None:
    """Seed B: of 25 jobs five more in the next half second, of 30 ten in the next second."""
    rate = Rate(10, "second", burst=20)
    starts = [one - NOW for one in greedy(rate, 25)]
    assert starts[:20] == [0] * 20
    assert starts[20:] == [100_000, 200_000, 300_000, 400_000, 500_000]
    later = [one - NOW for one in greedy(rate, 30)][20:]
    assert later == [SECOND // 10 * number for number in range(1, 11)]


def test_a_burst_comes_back_only_with_idle_time() -> None:
    """Two idle seconds are worth twenty starts, one is worth ten."""
    rate = Rate(10, "second", burst=20)
    next_allowed_at = 0
    for _ in range(20):
        next_allowed_at = rate.start(next_allowed_at, NOW)
    assert [rate.allowed_starts(next_allowed_at, NOW + after) for after in (0, SECOND, 2 * SECOND, DAY)] == [
        0,
        10,
        20,
        20,
    ]


@settings(max_examples=100, deadline=None)
@given(rates, st.lists(st.integers(0, 40), min_size=1, max_size=120))
def test_no_window_holds_more_than_the_burst_and_its_intervals(rate: Rate, gaps: list[int]) -> None:
    """For any demand: every run of starts fits into burst + floor(window / interval)."""
    now, next_allowed_at, starts = NOW, 0, list[int]()
    for gap in gaps:
        now += gap * rate.interval // 10
        while rate.allowed_starts(next_allowed_at, now) and len(starts) < 150:
            next_allowed_at = rate.start(next_allowed_at, now)
            starts.append(now)
            if gap % 3:  # sometimes all that is allowed, sometimes one
                break
    for first in range(len(starts)):
        for last in range(first, len(starts)):
            window = starts[last] - starts[first]
            assert last - first + 1 <= rate.burst + window // rate.interval


@settings(max_examples=100, deadline=None)
@given(rates, st.integers(0, 60), st.integers(0, 10**9))
def test_a_start_is_refused_just_before_and_allowed_just_when_it_is_free(
    rate: Rate, before: int, late: int
) -> None:
    """The announced wait is exact to the microsecond."""
    next_allowed_at = 0
    for _ in range(before):
        next_allowed_at = rate.start(next_allowed_at, NOW)
    free_at = rate.free_at(next_allowed_at)
    assert rate.allowed_starts(next_allowed_at, free_at) == 1 or free_at <= 0
    assert rate.allowed_starts(next_allowed_at, free_at - 1) == 0 or free_at <= 0
    assert rate.allowed_starts(next_allowed_at, max(NOW, free_at) + late) >= 1


@settings(max_examples=100, deadline=None)
@given(rates, st.integers(0, 80), st.integers(0, 10**8))
def test_the_room_is_as_many_as_can_start_one_after_the_other(rate: Rate, before: int, after: int) -> None:
    """A claim may take them all at once or one by one."""
    next_allowed_at = 0
    for _ in range(before):
        next_allowed_at = rate.start(next_allowed_at, NOW)
    now = NOW + after
    allowed_starts = rate.allowed_starts(next_allowed_at, now)
    started = 0
    while rate.free_at(next_allowed_at) <= now:
        next_allowed_at = rate.start(next_allowed_at, now)
        started += 1
    assert allowed_starts == started
    assert rate.allowed_starts(next_allowed_at, now) == 0


@pytest.mark.parametrize("burst", [1, 2, 20])
def test_a_rate_that_was_never_used_allows_its_burst(burst: int) -> None:
    """An arrival time of zero is long ago."""
    assert Rate(5, "hour", burst).allowed_starts(0, NOW) == burst


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"limit": 0}, "limit of a Rate must be a whole number, 1 or more, not 0"),
        ({"limit": -1}, "limit of a Rate"),
        ({"limit": 1.5}, "limit of a Rate must be a whole number, 1 or more, not 1.5"),
        ({"limit": math.nan}, "limit of a Rate"),
        ({"limit": "5"}, "limit of a Rate"),
        ({"limit": None}, "limit of a Rate"),
        ({"limit": 1, "burst": 0}, "burst of a Rate must be a whole number, 1 or more, not 0"),
        ({"limit": 1, "burst": 2.0}, "burst of a Rate"),
        ({"limit": 1, "per": "week"}, "per of a Rate must be one of second, minute, hour, day, not 'week'"),
        ({"limit": 1, "per": 60}, "per of a Rate"),
        ({"limit": 1, "per": "Minute"}, "per of a Rate"),
        ({"limit": 10**30}, "limit of a Rate must be 9007199254740992 at the most"),
        (
            {"limit": 1, "per": "day", "burst": 10**9},
            "burst of a Rate must be no more than its limit allows in 285 years",
        ),
    ],
)
def test_a_rate_that_means_nothing_is_refused(values: dict[str, Any], message: str) -> None:
    """At the declaration, with the field and what it must be."""
    with pytest.raises(ValueError, match=message):
        Rate(**values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"waiting": -1}, "waiting of Limits must be a whole number, 0 or more, or None, not -1"),
        ({"waiting": 0.5}, "waiting of Limits"),
        ({"running": -1}, "running of Limits must be a whole number, 0 or more, or None, not -1"),
        ({"running": math.inf}, "running of Limits"),
        ({"waiting": 10**30}, "waiting of Limits must be 9007199254740992 at the most"),
        ({"on_full": "drop"}, "on_full of Limits must be warn or reject, not 'drop'"),
    ],
)
def test_limits_that_mean_nothing_are_refused(values: dict[str, Any], message: str) -> None:
    """Zero is a limit, less is none."""
    with pytest.raises(ValueError, match=message):
        Limits(**values)


@pytest.mark.parametrize("on_full", ["warn", "reject"])
def test_limits_keep_what_they_are_given(on_full: Literal["warn", "reject"]) -> None:
    """Zero is legal: it lets nothing in, or nothing run."""
    rate = Rate(50)
    limits = Limits(waiting=0, running=0, rate=rate, on_full=on_full)
    assert (limits.waiting, limits.running, limits.rate, limits.on_full) == (0, 0, rate, on_full)


def test_no_limits_limit_nothing() -> None:
    """Seed A's critical queue: ten thousand waiting jobs and no word."""
    assert (NO_LIMITS.waiting, NO_LIMITS.running, NO_LIMITS.rate) == (None, None, None)
    assert is_below(10_000, NO_LIMITS.waiting)


@pytest.mark.parametrize(
    ("used", "limit", "fits"),
    [
        (0, 0, False),
        (0, 1, True),
        (99, 100, True),
        (100, 100, False),
        (101, 100, False),
        (499, 500, True),
        (500, 500, False),
        (10**12, None, True),
    ],
)
def test_the_first_job_over_a_limit_is_the_one_after_it(used: int, limit: int | None, fits: bool) -> None:
    """The hundredth fits, the hundred and first does not (S16)."""
    assert is_below(used, limit) is fits
