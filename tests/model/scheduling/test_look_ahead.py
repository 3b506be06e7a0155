"""How far a lane looks ahead, and at which jobs it does not (S68)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.job import JobRecord, NewJob
from fairlane.model.lifecycle.record_changes import new_record
from fairlane.model.scheduling.look_ahead import LookAhead, may_be_ahead

MS = 1_000


def job(**values: Any) -> JobRecord:
    """Return a plain job, with some values changed."""
    new = NewJob(id=UUID(int=1), tenant="a", queue="q", task="t", payload=b"", checksum=0)
    return msgspec.structs.replace(new_record(new, 0), **values)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, True),
        ({"attempt": 3, "failures": 3}, True),
        ({"failures": 4}, False),
        ({"max_attempts": 1}, False),
        ({"is_suspect": True}, False),
        ({"at_most_once": True}, False),
        ({"dedup_key": "k"}, True),
        ({"dedup_key": "k", "dedup_until": "started"}, False),
        ({"dedup_until": "started"}, True),
    ],
)
def test_a_job_that_a_lost_claim_would_cost_something_is_not_claimed_ahead(
    values: dict[str, Any], expected: bool
) -> None:
    """S68: nor one that a gate or a rate counts."""
    assert may_be_ahead(job(**values), has_gate=False, has_rate=False) is expected
    assert not may_be_ahead(job(**values), has_gate=True, has_rate=False)
    assert not may_be_ahead(job(**values), has_gate=False, has_rate=True)


def learned(slots: int, run_time: int, round_trip: int) -> LookAhead:
    """Return what a lane knows after one job."""
    lane = LookAhead(slots)
    lane.handler_took("q", "t", run_time)
    lane.round_trip_took(round_trip)
    return lane


def test_nothing_is_claimed_ahead_before_anything_is_known() -> None:
    """S68: neither without a run time nor without a round trip."""
    lane = LookAhead(16)
    assert (lane.jobs, lane.expected("q", "t"), lane.ends_soon("q", "t", 0)) == (0, 0, False)
    lane.round_trip_took(5 * MS)
    assert lane.jobs == 0
    other = LookAhead(16)
    other.handler_took("q", "t", 1)
    assert other.jobs == 0


@pytest.mark.parametrize(
    ("slots", "run_time", "round_trip", "expected"),
    [
        (16, 5, 5 * MS, 50),  # handlers that do nothing: one start in 100 µs, before that is measured
        (16, 5, 80 * MS, 500),  # never more than 50 ms of work
        (4, 2 * MS, 10 * MS, 20),
        (4, 9_999, 10 * MS, 4),
        (4, 10 * MS, 10 * MS, 0),
        (1, 60 * MS, 80 * MS, 1),
        (16, 300 * MS, 5 * MS, 0),
    ],
)
def test_a_lane_looks_ahead_by_what_starts_during_a_round_trip(
    slots: int, run_time: int, round_trip: int, expected: int
) -> None:
    """S68: nothing for jobs that take as long as a round trip."""
    assert learned(slots, run_time, round_trip).jobs == expected


def test_one_slow_round_trip_tells_little() -> None:
    """S68: after an outage jobs longer than a usual round trip are still not claimed ahead."""
    lane = learned(16, 6 * MS, 4 * MS)
    lane.round_trip_took(2_000 * MS)
    assert (lane.jobs, lane.ends_soon("q", "t", 0)) == (0, False)
    for _ in range(10):
        lane.round_trip_took(2_000 * MS)
    assert lane.jobs > 0


def test_run_times_are_learned_for_each_queue_and_task() -> None:
    """S68: and of the lane's recent jobs together."""
    lane = learned(4, 1 * MS, 10 * MS)
    for _ in range(30):
        lane.handler_took("q", "long", 100 * MS)
    assert (lane.expected("q", "t"), lane.expected("q", "long")) == (1 * MS, 100 * MS)
    assert lane.jobs == 0
    for _ in range(60):
        lane.handler_took("q", "t", 1 * MS)
    assert lane.jobs > 0


def test_a_handler_ends_soon_if_its_task_is_short_and_it_has_not_run_for_long() -> None:
    """S68: of a task that never ended nothing is expected."""
    lane = learned(4, 2 * MS, 10 * MS)
    assert lane.ends_soon("q", "t", 9 * MS)
    assert not lane.ends_soon("q", "t", 10 * MS)
    assert not lane.ends_soon("q", "other", 0)
    lane.handler_took("q", "other", 10 * MS)
    assert not lane.ends_soon("q", "other", 0)


def test_one_long_job_in_many_is_forgotten() -> None:
    """S68: a task that took a minute once is looked ahead for again."""
    lane = learned(16, 1, 5 * MS)
    lane.handler_took("q", "t", 60_000 * MS)
    assert lane.jobs == 0
    for _ in range(200):
        lane.handler_took("q", "t", 1)
    assert lane.jobs == 50


def test_the_pace_of_starts_is_learned_from_more_jobs_than_slots() -> None:
    """S68: fewer started at once and say nothing; a slow worker looks less far ahead, but always some."""
    lane = learned(16, 5, 10 * MS)
    assert lane.jobs == 100
    lane.starts_took(16, 16_000 * MS)
    assert lane.jobs == 100
    for _ in range(100):
        lane.starts_took(50, 25 * MS)
    assert lane.jobs == 20
    for _ in range(100):
        lane.starts_took(17, 17_000 * MS)
    assert (lane.jobs, lane.max_jobs) == (1, 1)


@given(
    slots=st.integers(1, 2_000),
    times=st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1, max_size=20),
    starts=st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 10**9)), max_size=10),
)
def test_a_lane_never_looks_further_ahead_than_its_bound(
    slots: int, times: list[tuple[int, int]], starts: list[tuple[int, int]]
) -> None:
    """S68: whatever was measured."""
    lane = LookAhead(slots)
    for run_time, round_trip in times:
        lane.handler_took("q", "t", run_time)
        lane.round_trip_took(round_trip)
    for jobs, took in starts:
        lane.starts_took(jobs, took)
    assert 0 <= lane.jobs <= lane.max_jobs <= 2_500
