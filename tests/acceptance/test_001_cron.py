"""Description B, scheduler: expressions, zones, changes of the clock, what is refused."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from fairlane.model.instants import Instant, to_instant
from fairlane.model.schedule.problems import problems
from fairlane.model.schedule.slots import next_after, slots_between
from fairlane.model.schedule.timing import Cron, Missing, Repeated
from tests.acceptance.plan import utc

NOON = to_instant(datetime(2024, 1, 1, 12, tzinfo=UTC))
NEW_YORK = "America/New_York"


def at(text: str) -> Instant:
    """Read an instant in UTC."""
    return to_instant(datetime.fromisoformat(f"{text}+00:00"))


def following(expression: str, after: Instant = NOON, zone: str = "UTC") -> str:
    """Return the next slot of an expression, in UTC."""
    return utc(next_after(Cron(expression=expression, timezone=zone), after))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("*/15 * * * *", "2024-01-01 12:15"),
        ("0 2 * * *", "2024-01-02 02:00"),
        ("0 0 1 * *", "2024-02-01 00:00"),
        ("0 9 * * 1", "2024-01-08 09:00"),
        ("30 14 * * 1-5", "2024-01-01 14:30"),
    ],
)
def test_001_cp4_2_expressions_give_the_expected_next_runs(expression: str, expected: str) -> None:
    """From noon of a Monday, the first of January 2024."""
    assert following(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0-5 13 * * *", "2024-01-01 13:00"),
        ("*/20 * * * *", "2024-01-01 12:20"),
        ("5,10 * * * *", "2024-01-01 12:05"),
        ("0 9 * JAN mon", "2024-01-08 09:00"),
        ("0 9 * feb-mar Fri", "2024-02-02 09:00"),
        ("0 9 * * 0", "2024-01-07 09:00"),
        ("0 9 * * 7", "2024-01-07 09:00"),
        ("0 9 ? * MON", "2024-01-08 09:00"),
        ("0 9 L * ?", "2024-01-31 09:00"),
        ("0 9 ? * FRIL", "2024-01-26 09:00"),
        ("0 9 ? * 5L", "2024-01-26 09:00"),
        ("0 9 ? * 2#3", "2024-01-16 09:00"),
        ("@hourly", "2024-01-01 13:00"),
        ("@yearly", "2025-01-01 00:00"),
    ],
)
def test_001_sc_6_the_table_of_fields(expression: str, expected: str) -> None:
    """Ranges, steps, lists, names in any case, 0 = 7 = Sunday, ?, L in both day fields, 2#3."""
    assert following(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("*/15 * * * *", "2024-01-01 12:15"),
        ("0 2 * * *", "2024-01-02 02:00"),
        ("0 0 1 * *", "2024-02-01 00:00"),
    ],
)
def test_001_sc_7_the_examples_of_the_description(expression: str, expected: str) -> None:
    """All from the same noon."""
    assert following(expression) == expected


def test_001_sc_8_impossible_dates_are_refused_and_rare_ones_work() -> None:
    """31 February at creation; 29 February in a leap year; the 31st only in long months."""
    (problem,) = problems(Cron(expression="0 0 31 2 *"))
    assert problem.field == "cron"
    assert following("0 0 29 2 *", at("2024-03-01T00:00")) == "2028-02-29 00:00"
    days = slots_between(Cron(expression="0 0 31 * *"), NOON, at("2025-01-01T00:00"), 100)
    assert [utc(day)[5:10] for day in days] == ["01-31", "03-31", "05-31", "07-31", "08-31", "10-31", "12-31"]


def test_001_sc_9_a_weekday_is_one_of_the_schedules_zone() -> None:
    """Monday, 09:00 in New York, is 14:00 UTC in winter."""
    assert following("0 9 * * 1", NOON, NEW_YORK) == "2024-01-01 14:00"
    assert following("0 9 * * 1", at("2024-01-01T14:00"), NEW_YORK) == "2024-01-08 14:00"


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2024-03-09", "14:00"),
        ("2024-03-10", "13:00"),
        ("2024-03-11", "13:00"),
        ("2024-11-02", "13:00"),
        ("2024-11-03", "14:00"),
        ("2024-11-04", "14:00"),
    ],
)
def test_001_sc_10_nine_in_new_york_through_both_changes(day: str, expected: str) -> None:
    """The local time stays, the hour in UTC moves."""
    assert following("0 9 * * *", at(f"{day}T05:30"), NEW_YORK) == f"{day} {expected}"


@pytest.mark.parametrize(
    ("missing", "expected"), [("first_valid", "07:00"), ("shift", "07:30"), ("skip", None)]
)
def test_001_sc_11_a_time_that_does_not_exist(missing: Missing, expected: str | None) -> None:
    """02:30 on 10 March 2024: 03:00, 03:30, or not on that day."""
    timing = Cron(expression="30 2 * * *", timezone=NEW_YORK, missing=missing)
    found = slots_between(timing, at("2024-03-10T05:00"), at("2024-03-11T04:00"), 10)
    assert [utc(slot)[11:] for slot in found] == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("repeated", "expected"), [("first", ["05:30"]), ("second", ["06:30"]), ("both", ["05:30", "06:30"])]
)
def test_001_sc_12_a_time_that_comes_twice(repeated: Repeated, expected: list[str]) -> None:
    """01:30 on 3 November 2024: the first, the second, or both."""
    timing = Cron(expression="30 1 * * *", timezone=NEW_YORK, repeated=repeated)
    found = slots_between(timing, at("2024-11-03T04:00"), at("2024-11-04T05:00"), 10)
    assert [utc(slot)[11:] for slot in found] == expected


def test_001_ec_8_on_both_days_of_a_change_it_runs_once_by_default() -> None:
    """`30 2 * * *`: at 03:00 in spring, once in autumn."""
    timing = Cron(expression="30 2 * * *", timezone="Europe/Berlin")
    spring = slots_between(timing, at("2024-03-30T23:00"), at("2024-03-31T22:00"), 10)
    autumn = slots_between(timing, at("2024-10-26T22:00"), at("2024-10-27T23:00"), 10)
    assert [utc(slot) for slot in spring] == ["2024-03-31 01:00"]
    assert [utc(slot) for slot in autumn] == ["2024-10-27 00:30"]


@pytest.fixture(params=["Pacific/Auckland", "America/Los_Angeles"])
def zone_of_the_machine(request: pytest.FixtureRequest) -> Iterator[str]:
    """A machine elsewhere."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = request.param
    time.tzset()
    yield request.param
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def test_001_cp4_4_it_runs_by_its_zone_and_not_by_the_machines(zone_of_the_machine: str) -> None:
    """Whatever the machine's clock shows."""
    assert following("0 9 * * *", NOON, NEW_YORK) == "2024-01-01 14:00"
    assert following("0 9 * * *") == "2024-01-02 09:00"


def test_001_sc_16_another_zone_of_the_machine_changes_nothing(zone_of_the_machine: str) -> None:
    """Ten days of slots are the same everywhere."""
    timing = Cron(expression="*/30 8-18 * * MON-FRI", timezone="Europe/Berlin")
    found = slots_between(timing, NOON, at("2024-01-11T12:00"), 1_000)
    assert utc(found[0]) == "2024-01-01 12:30"
    assert utc(found[-1]) == "2024-01-11 12:00"
