"""What is due: nothing early, all that is in time, and of what is late as much as was asked for."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fairlane.model.instants import DAY, HOUR, MINUTE, SECOND, Micros
from fairlane.model.job import NewJob
from fairlane.model.schedule.firing import MOST_COUNTED, ON_TIME, Decision, due_slots, spread_offset
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.schedule.timing import At, Every

NOON = 20_000 * DAY + 12 * HOUR
JOB = NewJob(id=UUID(int=0), tenant="acme", queue="q", task="t", payload=b"", checksum=0)


def spec(interval: Micros = HOUR, **fields: Any) -> ScheduleSpec:
    """Make a schedule."""
    return ScheduleSpec(**{"name": "s", "job": JOB, "timing": Every(interval=interval), **fields})


def test_a_slot_is_taken_when_its_time_has_come_and_not_before() -> None:
    """To the microsecond."""
    early = due_slots(spec(), NOON - HOUR, None, NOON - 1)
    assert early == Decision((), (), 0, None, NOON)
    assert due_slots(spec(), NOON - HOUR, None, NOON) == Decision((NOON,), (), 0, None, NOON + HOUR)


def test_what_is_settled_is_not_taken_again() -> None:
    """Also if the clock was set back."""
    assert due_slots(spec(), NOON, None, NOON).take == ()
    assert due_slots(spec(), NOON, None, NOON - HOUR) == Decision((), (), 0, None, NOON + HOUR)


@pytest.mark.parametrize("catch_up", ["skip", "latest", 1, 10])
def test_all_slots_of_the_last_minute_are_in_time(catch_up: Any) -> None:
    """A scheduler that dies costs none of them, whatever the schedule catches up with."""
    late = NOON + ON_TIME - SECOND
    assert due_slots(spec(10 * SECOND, catch_up=catch_up), NOON, None, late).take == tuple(
        NOON + seconds * SECOND for seconds in (10, 20, 30, 40, 50)
    )


@pytest.mark.parametrize(
    ("catch_up", "take", "missed"),
    [("skip", 0, 30), ("latest", 1, 29), (10, 10, 20), (24, 24, 6), (100, 24, 6)],
)
def test_late_slots_are_taken_as_the_schedule_says(catch_up: Any, take: int, missed: int) -> None:
    """Thirty hours were missed; 24 of them are within the look-back. The latest are taken, in order."""
    since = NOON - 30 * HOUR
    found = due_slots(spec(catch_up=catch_up), since, None, NOON + 2 * MINUTE)
    assert found.take == tuple(NOON - hours * HOUR for hours in range(take - 1, -1, -1))
    assert (found.missed, found.missed_since) == (missed, since + HOUR)
    assert found.next_at == NOON + HOUR


def test_a_slot_in_time_counts_as_one_of_those_caught_up_with() -> None:
    """The latest one is there already."""
    found = due_slots(spec(), NOON - 3 * HOUR, None, NOON + SECOND)
    assert (found.take, found.missed) == ((NOON,), 2)


def test_a_shorter_look_back_leaves_more_missed() -> None:
    """And nothing is taken of what is older."""
    found = due_slots(spec(look_back=90 * MINUTE, catch_up=10), NOON - 5 * HOUR, None, NOON + 2 * MINUTE)
    assert (found.take, found.missed) == ((NOON - HOUR, NOON), 3)
    old = due_slots(spec(look_back=MINUTE), NOON - 5 * HOUR, None, NOON + 30 * MINUTE)
    assert (old.take, old.missed) == ((), 5)


def test_missed_slots_are_counted_up_to_a_bound() -> None:
    """After a long time nobody needs the exact number."""
    found = due_slots(spec(SECOND), 0, None, NOON)
    assert (found.missed, found.missed_since, len(found.take)) == (MOST_COUNTED, SECOND, 60)


def test_slots_lie_between_start_and_end() -> None:
    """Both included; nothing outside was missed."""
    bounded = spec(starts=NOON, ends=NOON + HOUR, catch_up=10)
    assert due_slots(bounded, 0, None, NOON - 2 * HOUR) == Decision((), (), 0, None, NOON)
    found = due_slots(bounded, 0, None, NOON + 5 * HOUR)
    assert found == Decision((NOON, NOON + HOUR), (), 0, None, None)


def test_a_single_run_is_taken_late_and_then_is_over() -> None:
    """At most a day late."""
    once = spec(timing=At(NOON))
    assert due_slots(once, 0, None, NOON + HOUR) == Decision((NOON,), (), 0, None, None)
    assert due_slots(once, 0, None, NOON + 2 * DAY) == Decision((), (), 1, NOON, None)


def test_slots_too_soon_after_one_that_is_taken_are_skipped() -> None:
    """Within the window of uniqueness; the end of it is outside."""
    minutely = spec(MINUTE, unique_for=5 * MINUTE, catch_up=10)
    found = due_slots(minutely, NOON - 7 * MINUTE, NOON - 8 * MINUTE, NOON)
    assert found.take == (NOON - 3 * MINUTE,)
    assert found.skip == tuple(NOON - minutes * MINUTE for minutes in (6, 5, 4, 2, 1, 0))
    first = due_slots(minutely, NOON - MINUTE, None, NOON)
    assert (first.take, first.skip) == ((NOON,), ())


@given(
    interval=some.integers(1, 5_000),
    settled=some.integers(0, 200_000),
    passed=some.integers(-100, 200_000),
    catch_up=some.one_of(some.sampled_from(["skip", "latest"]), some.integers(1, 20)),
    unique_for=some.sampled_from([0, 1, 300, 7_000]),
)
def test_every_slot_that_is_due_is_taken_skipped_or_missed(
    interval: int, settled: int, passed: int, catch_up: Any, unique_for: int
) -> None:
    """Once each, and none before its time."""
    settled_to, now = settled * SECOND, max(0, settled + passed) * SECOND
    of = spec(interval * SECOND, catch_up=catch_up, unique_for=unique_for * SECOND)
    found = due_slots(of, settled_to, None, now)
    due = now // (interval * SECOND) - settled_to // (interval * SECOND) if now > settled_to else 0
    missed = due - len(found.take) - len(found.skip)
    assert found.missed == min(missed, MOST_COUNTED)
    handled = sorted((*found.take, *found.skip))
    assert len(set(handled)) == len(handled)
    assert all(settled_to < slot <= now and slot % (interval * SECOND) == 0 for slot in handled)
    assert found.next_at is not None
    assert found.next_at > max(now, settled_to)


def test_the_jobs_of_many_tenants_are_spread() -> None:
    """Evenly, always in the same way, and another schedule spreads them otherwise."""
    offsets = [spread_offset(f"tenant-{number}", "nightly", HOUR) for number in range(10_000)]
    tenths = [sum(offset // (HOUR // 10) == tenth for offset in offsets) for tenth in range(10)]
    assert all(800 < tenth < 1200 for tenth in tenths)
    assert sum(tenths) == 10_000
    assert offsets[0] != spread_offset("tenant-0", "hourly", HOUR)
    assert spread_offset("ab", "c", HOUR) != spread_offset("a", "bc", HOUR)
    assert spread_offset("acme", "nightly", 0) == 0
