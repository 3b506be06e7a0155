"""Delays between attempts (S26), held against the figures of the five systems that asked for them."""

from __future__ import annotations

import math
import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.model.failure import RETRIED, ErrorClass
from fairlane.model.instants import DAY, HOUR, SECOND
from fairlane.model.retry.backoff import (
    DEFAULT_BACKOFF,
    LONGEST_DELAY,
    LONGEST_RETRY_AFTER,
    Backoff,
    backoff_for,
    retry_after,
)

LAST_DRAW = math.nextafter(1, 0)

A_CRITICAL = Backoff.delays(10, 30, 60)
A_DEFAULT = Backoff.delays(60, 300, 900)
A_BULK = Backoff.delays(300, 900)
B = Backoff.exponential(1, cap=3600, floor=0.1, jitter=0.1)
C = Backoff.exponential(2, cap=300, jitter=0.2)
C_RATE_LIMITED = Backoff.exponential(60, cap=300, jitter=0.2)
D = Backoff.exponential(1, cap=300, jitter=0.1)
D_DEVELOPMENT = Backoff.exponential(1, cap=60, jitter=0.1)
E = Backoff.exponential(30, cap=math.inf, jitter=0.25)
E_FORMULA = Backoff.exponential(60, cap=math.inf, jitter=0.25)


def seconds(backoff: Backoff, failures: int, draw: float) -> float:
    """Return a delay in seconds."""
    return backoff.micros(failures, draw) / SECOND


@pytest.mark.parametrize(
    ("backoff", "ranges"),
    [
        (A_CRITICAL, [(10, 10), (30, 30), (60, 60), (60, 60)]),
        (A_DEFAULT, [(60, 60), (300, 300), (900, 900), (900, 900)]),
        (A_BULK, [(300, 300), (900, 900), (900, 900)]),
        (B, [(0.9, 1.1), (1.8, 2.2), (3.6, 4.4), (7.2, 8.8), (14.4, 17.6)]),
        (C, [(1.6, 2.4), (3.2, 4.8), (6.4, 9.6), (12.8, 19.2), (25.6, 38.4)]),
        (C_RATE_LIMITED, [(48, 72), (96, 144), (192, 288), (240, 300)]),
        (D, [(0.9, 1.1), (1.8, 2.2), (3.6, 4.4)]),
        (E, [(22.5, 37.5), (45, 75), (90, 150), (180, 300), (360, 600)]),
        (E_FORMULA, [(45, 75)]),
    ],
    ids=["A critical", "A default", "A bulk", "B", "C", "C rate limited", "D", "E", "E by formula"],
)
def test_each_schedule_has_the_figures_that_were_asked_for(
    backoff: Backoff, ranges: list[tuple[float, float]]
) -> None:
    """The least and the most that a draw can give, for the first failures."""
    for failures, (least, most) in enumerate(ranges, start=1):
        assert seconds(backoff, failures, 0.0) == pytest.approx(least)
        assert seconds(backoff, failures, LAST_DRAW) == pytest.approx(most)


@pytest.mark.parametrize(
    ("backoff", "from_failure", "least", "most"),
    [
        (B, 13, 3240, 3600),
        (C, 9, 240, 300),
        (C_RATE_LIMITED, 4, 240, 300),
        (D, 10, 270, 300),
        (D_DEVELOPMENT, 7, 54, 60),
        (DEFAULT_BACKOFF, 9, 240, 300),
    ],
    ids=["B", "C", "C rate limited", "D", "D development", "default"],
)
def test_a_capped_delay_is_never_above_the_cap_and_still_spreads(
    backoff: Backoff, from_failure: int, least: float, most: float
) -> None:
    """Else all that failed together would come back together, for ever."""
    draws = random.Random(1)
    for failures in [*range(from_failure, from_failure + 5), 60, 1_000, 100_000]:
        delays = {seconds(backoff, failures, draws.random()) for _ in range(200)}
        assert least <= min(delays) < max(delays) <= most
        assert len(delays) > 150
        assert max(delays) - min(delays) > 0.9 * (most - least)


@pytest.mark.parametrize(
    ("backoff", "attempts"),
    [
        (A_CRITICAL, 4),
        (A_DEFAULT, 4),
        (A_BULK, 3),
        (Backoff.delays(5), 2),
        (Backoff.never(), 1),
        (B, None),
        (DEFAULT_BACKOFF, None),
    ],
)
def test_a_list_of_delays_implies_its_attempts(backoff: Backoff, attempts: int | None) -> None:
    """A first run and one for each delay; an exponential schedule implies none."""
    assert backoff.implied_attempts == attempts


def test_four_delays_of_e_take_450_seconds_give_or_take_a_quarter() -> None:
    """Five attempts, so four waits; its formula would take 900."""
    waits = range(1, 5)
    assert sum(seconds(E, n, 0.5) for n in waits) == pytest.approx(450)
    assert sum(seconds(E, n, 0.0) for n in waits) == pytest.approx(450 * 0.75)
    assert sum(seconds(E, n, LAST_DRAW) for n in waits) == pytest.approx(450 * 1.25)
    assert sum(seconds(E_FORMULA, n, 0.5) for n in waits) == pytest.approx(900)


def test_doubling_from_one_second_fails_at_zero_one_three_and_seven() -> None:
    """Three retries of seed B without jitter, and the sum as the worst case."""
    plain = Backoff.exponential(1, cap=3600, jitter=0)
    at = [sum(seconds(plain, n, 0.3) for n in range(1, k)) for k in range(1, 5)]
    assert at == [0, 1, 3, 7]
    assert sum(seconds(plain, n, 0.0) for n in range(1, 11)) == sum(2**i for i in range(10))


def test_a_thousand_delays_lie_within_the_jitter_and_are_not_alike() -> None:
    """Many jobs that fail at once do not come back in the same second."""
    draws = random.Random(7)
    delays = [seconds(E, 1, draws.random()) for _ in range(1_000)]
    assert all(22.5 <= delay <= 37.5 for delay in delays)
    by_second = [sum(int(delay) == second for delay in delays) for second in range(22, 38)]
    assert max(by_second) < 120


def test_the_floor_holds_after_the_jitter() -> None:
    """Also where the drawn delay would be below it."""
    backoff = Backoff.exponential(0.05, cap=10, floor=0.1, jitter=0.5)
    assert seconds(backoff, 1, 0.0) == 0.1
    assert seconds(backoff, 1, LAST_DRAW) == 0.1
    assert seconds(backoff, 3, 0.0) == 0.1
    assert seconds(backoff, 3, LAST_DRAW) == pytest.approx(0.3)
    assert seconds(Backoff(steps=(0.0, 5.0), floor=2, jitter=0), 1, 0.5) == 2


def test_full_jitter_spreads_from_nothing_to_twice() -> None:
    """A jitter of 1 is legal."""
    backoff = Backoff.exponential(10, cap=1000, jitter=1)
    assert seconds(backoff, 1, 0.0) == 0
    assert seconds(backoff, 1, 0.5) == 10
    assert seconds(backoff, 1, LAST_DRAW) == pytest.approx(20)


def test_a_list_may_be_jittered_too() -> None:
    """Each entry spreads, the last one repeating."""
    backoff = Backoff.delays(10, 100, jitter=0.1)
    for failures, least, most in ((1, 9, 11), (2, 90, 110), (5, 90, 110)):
        assert seconds(backoff, failures, 0.0) == pytest.approx(least)
        assert seconds(backoff, failures, LAST_DRAW) == pytest.approx(most)


@pytest.mark.parametrize("failures", [-1, 0, 1])
def test_before_the_first_failure_the_first_delay_counts(failures: int) -> None:
    """There is no delay number zero."""
    assert A_CRITICAL.micros(failures, 0.0) == 10 * SECOND
    assert D.micros(failures, 0.5) == SECOND


def test_delay_is_the_same_wait_as_a_timedelta() -> None:
    """The public face of `micros`."""
    assert D.delay(3, 0.0) == timedelta(seconds=3.6)
    assert A_BULK.delay(2, 0.9) == timedelta(minutes=15)


def test_never_gives_up_at_the_first_failure() -> None:
    """And nothing else does."""
    assert Backoff.never().gives_up
    assert not any(one.gives_up for one in (A_BULK, B, C, D, E, DEFAULT_BACKOFF, Backoff.delays(0)))


@pytest.mark.parametrize(
    "backoff",
    [
        E,
        Backoff.exponential(1, factor=2, cap=math.inf),
        Backoff.exponential(1.0, factor=1e308, cap=math.inf, jitter=1),
        Backoff.exponential(1e308, cap=math.inf, jitter=1),
        Backoff.exponential(math.inf, cap=math.inf),
        Backoff.exponential(1, factor=math.inf, cap=math.inf, jitter=1),
        Backoff.exponential(1, cap=math.inf, floor=math.inf),
        Backoff.delays(1e308, jitter=1),
    ],
)
@pytest.mark.parametrize("failures", [2, 100, 1_000, 1_019, 1_020, 1_021, 1_024, 1_025, 2_000, 10**9])
def test_a_schedule_without_cap_ends_at_a_year_and_never_at_nothing(backoff: Backoff, failures: int) -> None:
    """However large the power: no overflow, no infinity, and no immediate retry out of one."""
    for draw in (0.0, 0.5, LAST_DRAW):
        delay = backoff.micros(failures, draw)
        assert isinstance(delay, int)
        assert 0 <= delay <= LONGEST_DELAY
    if failures >= 100:
        assert backoff.micros(failures, 0.75) == LONGEST_DELAY == 365 * DAY


backoffs = st.builds(
    Backoff,
    base=st.floats(1e-6, 1e6),
    factor=st.floats(1, 1e3),
    cap=st.one_of(st.floats(10, 1e9), st.just(math.inf)),
    floor=st.floats(0, 10),
    jitter=st.floats(0, 1),
    steps=st.none() | st.lists(st.floats(0, 10), min_size=1, max_size=5).map(tuple),
)


@settings(max_examples=100, deadline=None)
@given(backoffs, st.integers(1, 3_000), st.floats(0, 1, exclude_max=True), st.floats(0, 1, exclude_max=True))
def test_every_delay_is_between_floor_and_cap_and_grows_with_the_draw(
    backoff: Backoff, failures: int, draw: float, other: float
) -> None:
    """For any schedule; the draw only places the delay inside its spread."""
    low, high = sorted((draw, other))
    shorter, longer = backoff.micros(failures, low), backoff.micros(failures, high)
    assert round(backoff.floor * SECOND) <= shorter <= longer
    assert longer <= round(min(backoff.cap, LONGEST_DELAY / SECOND) * SECOND)


@settings(max_examples=100, deadline=None)
@given(backoffs, st.integers(1, 200), st.floats(0, 1, exclude_max=True))
def test_without_a_list_no_delay_is_shorter_than_the_one_before_at_the_same_draw(
    backoff: Backoff, failures: int, draw: float
) -> None:
    """Waiting longer and longer is the point."""
    if backoff.steps is None:
        assert backoff.micros(failures, draw) <= backoff.micros(failures + 1, draw) + 1


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"jitter": -0.1}, "jitter"),
        ({"jitter": 1.1}, "jitter"),
        ({"jitter": math.nan}, "jitter"),
        ({"base": 0}, "base"),
        ({"base": -1}, "base"),
        ({"base": math.nan}, "base"),
        ({"factor": 0.5}, "factor"),
        ({"factor": 0}, "factor"),
        ({"factor": math.nan}, "factor"),
        ({"floor": -1}, "floor"),
        ({"floor": math.nan}, "floor"),
        ({"cap": 0}, "cap"),
        ({"cap": -5}, "cap"),
        ({"cap": math.nan}, "cap"),
        ({"floor": 10, "cap": 5}, "cap"),
        ({"steps": (-1,)}, "steps"),
        ({"steps": (1, math.inf), "cap": math.inf}, "steps"),
        ({"steps": (math.nan,)}, "steps"),
        ({"steps": (600,), "cap": 300}, "steps"),
    ],
)
def test_a_schedule_that_means_nothing_is_refused_by_field(values: dict[str, Any], field: str) -> None:
    """At the declaration, not at the first failure."""
    with pytest.raises(ValueError, match=f"^{field} of a Backoff must be "):
        Backoff(**values)


@pytest.mark.parametrize(
    "values",
    [
        {"jitter": 0},
        {"jitter": 1},
        {"base": 1e-6},
        {"factor": 1},
        {"floor": 0.5},
        {"cap": 1e-3, "floor": 1e-3},
        {"steps": (0,)},
        {"steps": (300,), "cap": 300},
        {"cap": math.inf},
    ],
)
def test_the_ends_of_every_range_are_legal(values: dict[str, Any]) -> None:
    """Values up to the limit are allowed and stored as given."""
    made = Backoff(**values)
    assert {name: getattr(made, name) for name in values} == values


def test_the_default_doubles_from_two_seconds_to_five_minutes() -> None:
    """The same by every way of saying nothing."""
    assert Backoff() == Backoff.exponential() == DEFAULT_BACKOFF
    assert Backoff() == Backoff(base=2, factor=2, cap=300, floor=0, jitter=0.2, steps=None)


def test_a_list_without_delays_is_refused_with_advice() -> None:
    """Who wants no retry says so."""
    with pytest.raises(ValueError, match=r"Backoff\.never\(\) retries nothing"):
        Backoff.delays()


# ── which policy speaks ──────────────────────────────────────────────────────

BY_CLASS = {ErrorClass.RATE_LIMITED: C_RATE_LIMITED, ErrorClass.TIMEOUT: Backoff.never()}


@pytest.mark.parametrize(
    ("error_class", "policies", "chosen"),
    [
        (ErrorClass.TRANSIENT, (), DEFAULT_BACKOFF),
        (ErrorClass.TRANSIENT, (None, None), DEFAULT_BACKOFF),
        (ErrorClass.TRANSIENT, (None, A_BULK), A_BULK),
        (ErrorClass.TRANSIENT, (A_BULK, C), A_BULK),
        (ErrorClass.TRANSIENT, (BY_CLASS, C), C),
        (ErrorClass.TRANSIENT, (BY_CLASS,), DEFAULT_BACKOFF),
        (ErrorClass.RATE_LIMITED, (BY_CLASS, C), C_RATE_LIMITED),
        (ErrorClass.RATE_LIMITED, (C, BY_CLASS), C),
        (ErrorClass.RATE_LIMITED, ({}, BY_CLASS), C_RATE_LIMITED),
        (ErrorClass.TIMEOUT, (BY_CLASS, C), Backoff.never()),
    ],
)
def test_the_first_policy_that_speaks_of_the_class_is_used(
    error_class: ErrorClass, policies: tuple[Any, ...], chosen: Backoff
) -> None:
    """Call, task, queue, application; a table by class is silent about others (seed A: queue over all)."""
    assert backoff_for(error_class, *policies) == chosen


def test_one_table_serves_the_classes_of_seed_c() -> None:
    """Doubling from two seconds for most, from a minute where the other side asked for it."""
    policy = {ErrorClass.RATE_LIMITED: C_RATE_LIMITED}
    for error_class in RETRIED:
        first = seconds(backoff_for(error_class, policy, C), 1, 0.5)
        assert first == (60 if error_class is ErrorClass.RATE_LIMITED else 2)


# ── asked for ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("after", "micros"),
    [
        (0, 0),
        (90, 90 * SECOND),
        (0.25, 250_000),
        (timedelta(hours=1), HOUR),
        (-1, 0),
        (timedelta(days=-3), 0),
        (86_400, DAY),
        (86_400.000_001, DAY),
        (timedelta.max, DAY),
        (1e12, DAY),
    ],
)
def test_what_a_handler_or_server_asks_for_is_bounded_to_a_day(after: timedelta | float, micros: int) -> None:
    """Never negative, and never for ever."""
    assert retry_after(after) == micros
    assert LONGEST_RETRY_AFTER == DAY
