"""Turns go by virtual clocks: shares follow weights, and who drains and returns gains nothing by it (S41)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.model.instants import HOUR, SECOND
from fairlane.model.scheduling.fairness import (
    FIRST_ESTIMATE,
    SCALE,
    Contender,
    activate,
    charge,
    correction,
    is_forgettable,
    learn,
    stride,
    virtual_now,
    water_fill,
)

# ── strides and charges ──────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (1, 2**20),
        (2.0, 2**19),
        (5, 209_715),
        (0.5, 2**21),
        (0.01, 104_857_600),
        (1000, 1_049),
    ],
)
def test_a_stride_is_the_scale_over_the_weight(weight: float, expected: int) -> None:
    """Whole numbers, so that three stores reckon alike."""
    assert stride(weight) == expected


@pytest.mark.parametrize("weight", [0, -1, 0.009, 1000.1, math.nan, math.inf, -math.inf])
def test_a_weight_outside_the_range_is_refused(weight: float) -> None:
    """From a hundredth to a thousand."""
    with pytest.raises(ValueError, match=r"a weight is a number from 0\.01 to 1000, not"):
        stride(weight)


@settings(max_examples=100, deadline=None)
@given(st.floats(0.01, 1000), st.integers(0, 24 * HOUR))
def test_a_charge_is_exact_and_never_nothing(weight: float, cost: int) -> None:
    """Rounded once, halves up; a job that cost no time still had a turn."""
    one = stride(weight)
    exact = Fraction(one * cost, SECOND)
    assert charge(one, cost) == max(1, math.floor(exact + Fraction(1, 2)))
    assert charge(one, cost) >= 1


@pytest.mark.parametrize("cost", [0, 1, -5])
def test_nothing_is_free(cost: int) -> None:
    """Else a tenant of instant jobs would never yield."""
    assert charge(stride(1000), cost) == 1


def test_counting_jobs_charges_a_stride_each() -> None:
    """A job is worth a second where jobs are counted."""
    assert charge(stride(1)) == SCALE
    assert charge(stride(4)) == SCALE // 4


@settings(max_examples=100, deadline=None)
@given(st.floats(0.01, 1000), st.lists(st.integers(0, 24 * HOUR), min_size=1, max_size=20))
def test_corrections_add_up_to_what_was_true(weight: float, costs: list[int]) -> None:
    """However often an estimate is revised, the clock ends where the true cost puts it."""
    one = stride(weight)
    vt, charged = charge(one, FIRST_ESTIMATE), FIRST_ESTIMATE
    for actual in costs:
        vt += correction(one, charged, actual)
        charged = actual
    assert vt == charge(one, costs[-1])


def test_a_correction_may_give_back() -> None:
    """A job that was quicker than expected."""
    assert correction(stride(1), 10 * SECOND, 4 * SECOND) == -6 * SCALE
    assert correction(stride(1), 5, 5) == 0


# ── estimates ────────────────────────────────────────────────────────────────


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 24 * HOUR), st.integers(0, 24 * HOUR))
def test_an_estimate_comes_to_what_is_seen_and_does_not_overshoot(estimate: int, actual: int) -> None:
    """A tenth of the way each time; within ten microseconds at the end."""
    for _ in range(400):
        nearer = learn(estimate, actual)
        assert min(estimate, actual) <= nearer <= max(estimate, actual)
        assert abs(actual - nearer) <= abs(actual - estimate)
        estimate = nearer
    assert abs(actual - estimate) < 10


def test_one_outlier_moves_an_estimate_by_a_tenth() -> None:
    """α is 0.1."""
    assert learn(SECOND, 11 * SECOND) == 2 * SECOND
    assert learn(11 * SECOND, SECOND) == 10 * SECOND


# ── V ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("floor", "ready", "expected"),
    [(0, [], 0), (5, [], 5), (5, [3], 5), (5, [9, 7, 8], 7), (7, [7], 7), (0, [-3], 0)],
)
def test_the_virtual_now_is_the_lowest_ready_clock_and_never_falls(
    floor: int, ready: Sequence[int], expected: int
) -> None:
    """The stored floor holds it up."""
    assert virtual_now(floor, ready) == expected


@pytest.mark.parametrize(("vt", "now", "joined"), [(3, 10, 10), (10, 10, 10), (12, 10, 12)])
def test_who_joins_gets_nothing_for_the_time_away_and_keeps_its_debts(vt: int, now: int, joined: int) -> None:
    """`vt = max(vt, V)`."""
    assert activate(vt, now) == joined


@pytest.mark.parametrize(("vt", "now", "is_lossless"), [(9, 10, True), (10, 10, True), (11, 10, False)])
def test_a_clock_may_be_forgotten_once_it_says_nothing_more(vt: int, now: int, is_lossless: bool) -> None:
    """That is when coming back without it gives the same clock."""
    assert is_forgettable(vt, now) is is_lossless
    assert (activate(0, now) == activate(vt, now)) is is_lossless


class Turns:
    """A queue served one by one: who is ready, whose virtual time is stored, and V."""

    def __init__(self, *, forgets: str) -> None:
        """`forgets` says which clocks are dropped on draining: none, lossless or all."""
        self.forgets = forgets
        self.clocks: dict[str, int] = {}
        self.jobs: Counter[str] = Counter()
        self.since: dict[str, int] = {}
        self.floor = 0
        self.tick = count()

    def enqueue(self, tenant: str, jobs: int = 1) -> None:
        """Add jobs; a tenant that had none becomes active."""
        if not self.jobs[tenant]:
            self.clocks[tenant] = activate(self.clocks.get(tenant, 0), self._now())
            self.since[tenant] = next(self.tick)
        self.jobs[tenant] += jobs

    def serve(self) -> str:
        """Serve the smallest clock, ties to who became ready first."""
        self.floor = self._now()
        ready = [tenant for tenant, jobs in self.jobs.items() if jobs]
        tenant = min(ready, key=lambda one: (self.clocks[one], self.since[one]))
        self.jobs[tenant] -= 1
        self.clocks[tenant] += charge(stride(1))
        if not self.jobs[tenant]:
            is_lossless = self.forgets == "lossless" and is_forgettable(self.clocks[tenant], self._now())
            if self.forgets == "all" or is_lossless:
                del self.clocks[tenant]
        return tenant

    def _now(self) -> int:
        return virtual_now(self.floor, [self.clocks[one] for one, jobs in self.jobs.items() if jobs])


def drain_and_return(forgets: str, serves: int = 600) -> list[str]:
    """Serve one tenant with a backlog, and five that have one job, drain, and come back at once."""
    turns = Turns(forgets=forgets)
    turns.enqueue("backlogged", 10_000)
    trickling = [f"trickling {number}" for number in range(5)]
    for tenant in trickling:
        turns.enqueue(tenant)
    served = []
    for _ in range(serves):
        served.append(turns.serve())
        if served[-1] in trickling:
            turns.enqueue(served[-1])
    return served


def test_a_backlogged_tenant_keeps_its_share_beside_five_that_drain_and_return() -> None:
    """At least nine tenths of a sixth."""
    served = Counter(drain_and_return("none"))
    assert served["backlogged"] >= 0.9 * 600 / 6
    assert min(served.values()) >= 0.9 * 600 / 6


def test_forgetting_a_drained_clock_would_starve_the_backlogged_tenant() -> None:
    """Virtual times of drained tenants are stored; without them it gets almost nothing."""
    assert Counter(drain_and_return("all"))["backlogged"] <= 600 / 6 / 10


def test_forgetting_a_clock_that_v_has_passed_changes_nothing() -> None:
    """Rows may go when `is_forgettable` says so: the very same turns."""
    assert drain_and_return("lossless") == drain_and_return("none")


def test_an_idle_tenant_hoards_no_turns() -> None:
    """After a thousand turns of another it gets every second one, not the next thousand."""
    turns = Turns(forgets="none")
    turns.enqueue("busy", 10_000)
    turns.enqueue("idle")
    for _ in range(1_000):
        turns.serve()
    turns.enqueue("idle", 1_000)
    served = Counter(turns.serve() for _ in range(100))
    assert abs(served["idle"] - 50) <= 1


# ── water-filling ────────────────────────────────────────────────────────────


def one_by_one(contenders: Sequence[Contender], slots: int) -> list[int]:
    """Say it plainly: again and again the smallest (clock, ready since, position) that has room."""
    clocks = [one.vt for one in contenders]
    rooms = [one.free_slots for one in contenders]
    served: list[int] = []
    for _ in range(slots):
        able = [position for position, free_slots in enumerate(rooms) if free_slots > 0]
        if not able:
            break
        chosen = min(
            able, key=lambda position: (clocks[position], contenders[position].ready_since, position)
        )
        clocks[chosen] += max(1, contenders[chosen].stride)
        rooms[chosen] -= 1
        served.append(chosen)
    return served


contenders_ = st.lists(
    st.builds(
        Contender,
        vt=st.integers(0, 50),
        ready_since=st.integers(0, 5),
        stride=st.integers(0, 20),
        free_slots=st.integers(-2, 10),
    ),
    max_size=8,
)


@settings(max_examples=100, deadline=None)
@given(contenders_, st.integers(-1, 60))
def test_filling_a_batch_equals_serving_one_by_one(contenders: list[Contender], slots: int) -> None:
    """A claim of many is as fair as many claims of one."""
    assert water_fill(contenders, slots) == one_by_one(contenders, slots)


@settings(max_examples=100, deadline=None)
@given(contenders_, st.integers(0, 30), st.integers(0, 30))
def test_a_smaller_batch_is_the_beginning_of_a_larger_one(
    contenders: list[Contender], fewer: int, more: int
) -> None:
    """How many are asked for does not change who goes first."""
    fewer, more = sorted((fewer, more))
    assert water_fill(contenders, more)[:fewer] == water_fill(contenders, fewer)


def test_nobody_is_served_beyond_its_room() -> None:
    """Nor below it: a limit that was lowered under what runs leaves no room at all (S45)."""
    contenders = [
        Contender(vt=0, ready_since=0, stride=1, free_slots=-3),
        Contender(vt=5, ready_since=1, stride=1, free_slots=2),
        Contender(vt=9, ready_since=2, stride=1, free_slots=0),
    ]
    assert water_fill(contenders, 10) == [1, 1]
    assert water_fill([], 10) == []
    assert water_fill(contenders, 0) == []


@pytest.mark.parametrize("batch", [1, 3, 16, 64, 1_000])
def test_weights_of_one_two_and_five_get_their_shares_of_a_thousand(batch: int) -> None:
    """In batches of any size, to within one job."""
    weights = [1.0, 2.0, 5.0]
    clocks, served = [0, 0, 0], Counter[int]()
    while served.total() < 1_000:
        fill = water_fill(
            [
                Contender(vt=vt, ready_since=place, stride=stride(weight), free_slots=10_000)
                for place, (vt, weight) in enumerate(zip(clocks, weights, strict=True))
            ],
            min(batch, 1_000 - served.total()),
        )
        for position in fill:
            clocks[position] += charge(stride(weights[position]))
        served.update(fill)
    for position, share in enumerate([125, 250, 625]):
        assert abs(served[position] - share) <= 1


def test_ties_go_to_who_became_ready_first() -> None:
    """Not to whose name sorts first."""
    contenders = [Contender(vt=7, ready_since=since, stride=10, free_slots=1) for since in (3, 1, 2)]
    assert water_fill(contenders, 3) == [1, 2, 0]
