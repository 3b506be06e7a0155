"""Expressions are read as people write them, and refused with what is allowed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fairlane.model.instants import to_datetime, to_instant
from fairlane.model.schedule.cron import is_hourly, matcher, read_expression
from fairlane.model.schedule.slots import next_after, slots_between
from fairlane.model.schedule.timing import Cron

NOON = to_instant(datetime(2024, 1, 1, 12, tzinfo=UTC))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("*/15 9-17 1,15 1-6 1-5", "*/15 9-17 1,15 1-6 1-5"),
        ("  0   9 * *  MON ", "0 9 * * 1"),
        ("0 9 ? * mon-Fri", "0 9 * * 1-5"),
        ("0 9 1 jan,JUL ?", "0 9 1 1,7 *"),
        ("0 9 L * *", "0 9 L * *"),
        ("0 9 LW * *", "0 9 LW * *"),
        ("0 9 1,l * *", "0 9 1,L * *"),
        ("0 9 * * 5L", "0 9 * * 5L"),
        ("0 9 * * fril,SUN", "0 9 * * 5L,0"),
        ("0 9 * * TUE#3", "0 9 * * 2#3"),
        ("0 9 * * 0,7", "0 9 * * 0,7"),
        ("0 9 * * sat-sun", "0 9 * * 6-7"),
        ("0 9 * * 5-0", "0 9 * * 5-7"),
        ("0 9 * * SUN-SUN", "0 9 * * 0-0"),
        ("0 9 * * SUN-TUE", "0 9 * * 0-2"),
        ("5/20 0-12/3 * * *", "5/20 0-12/3 * * *"),
        ("1,* * * * *", "* * * * *"),
        ("0 9 1-5 2,* MON", "0 9 1-5 * 1"),
        ("@Hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("0 0 29 2 *", "0 0 29 2 *"),
        ("0 0 31 2 MON", "0 0 31 2 1"),
    ],
)
def test_what_people_write_is_read(expression: str, text: str) -> None:
    """In any case, with names, `?`, L, # and @names."""
    assert read_expression(expression) == (text, [])
    matcher(expression, "or")


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("60 * * * *", ["minute '60' is not allowed; use 0-59"]),
        ("* 24 * * *", ["hour '24' is not allowed; use 0-23"]),
        ("* * 0 * *", ["day of month '0' is not allowed; use 1-31, L for the last day"]),
        ("* * 32 * *", ["day of month '32' is not allowed"]),
        ("* * * 13 *", ["month '13' is not allowed; use 1-12, JAN-DEC"]),
        ("* * * * 8", ["day of week '8' is not allowed; use 0-7, SUN-SAT"]),
        ("* * * MON *", ["month 'MON' is not allowed"]),
        ("* * * * JAN", ["day of week 'JAN' is not allowed"]),
        ("? * * * *", ["minute '?' is not allowed"]),
        ("L * * * *", ["minute 'L' is not allowed"]),
        ("* * * * L", ["day of week 'L' is not allowed", "FRIL for the last Friday"]),
        ("* * * * 8L", ["day of week '8L' is not allowed"]),
        ("* * * * 2#6", ["day of week '2#6' is not allowed"]),
        ("* * * * XYZ#2", ["day of week 'XYZ#2' is not allowed"]),
        ("* * 2#2 * *", ["day of month '2#2' is not allowed"]),
        ("* * 15W * *", ["day of month '15W' is not allowed"]),
        ("*/0 * * * *", ["minute '*/0' is not allowed"]),
        ("*/60 * * * *", ["minute '*/60' is not allowed"]),
        ("5/99 * * * *", ["minute '5/99' is not allowed"]),
        ("30-10 * * * *", ["minute '30-10' is not allowed"]),
        ("1-99 * * * *", ["minute '1-99' is not allowed"]),
        ("* * * * FRI-MON", ["day of week 'FRI-MON' is not allowed"]),
        ("1,,2 * * * *", ["minute '1,,2' is not allowed"]),
        ("+5 * * * *", ["minute '+5' is not allowed"]),
        ("٣ * * * *", ["minute '٣' is not allowed"]),
        ("61 25 * * *", ["minute '61' is not allowed", "hour '25' is not allowed"]),
        ("0 9 31 2 *", ["month 2 has no day 31; choose a day that it has"]),
        ("0 9 30,31 2 *", ["month 2 has no day 30,31"]),
        ("0 9 31 4,jun *", ["month 4,6 has no day 31"]),
        ("* * * *", ["has 4 fields; write five, minute, hour, day of month, month, day of week"]),
        ("0 * * * * *", ["has 6 fields: seconds and years are not offered"]),
        ("", ["has 0 fields"]),
        ("@hourlie", ["'@hourlie' is not a name of an expression; use @hourly"]),
        ("@reboot", ["'@reboot' is not a name of an expression; use @hourly, @daily"]),
        ("1," * 300, ["has 600 characters; use 500 at the most"]),
    ],
)
def test_what_is_wrong_is_said_with_what_is_allowed(expression: str, says: list[str]) -> None:
    """Each field by its name; all of them at once."""
    found = " ".join(problem.text for problem in read_expression(expression)[1])
    assert [part for part in says if part not in found] == []
    with pytest.raises(ValueError, match="cron: "):
        matcher(expression, "or")


def first(expression: str, *, after: int = NOON, days: str = "or", count: int = 1) -> list[str]:
    """Return the first slots of an expression in UTC."""
    cron = Cron(expression, days=days)  # type: ignore[arg-type]
    found = slots_between(cron, after, after + 10**17, count)
    return [f"{to_datetime(slot):%Y-%m-%d %H:%M}" for slot in found]


@pytest.mark.parametrize(
    ("expression", "runs"),
    [
        ("*/15 * * * *", ["2024-01-01 12:15", "2024-01-01 12:30"]),
        ("0 2 * * *", ["2024-01-02 02:00", "2024-01-03 02:00"]),
        ("0 0 1 * *", ["2024-02-01 00:00", "2024-03-01 00:00"]),
        ("0 0 29 2 *", ["2024-02-29 00:00", "2028-02-29 00:00"]),
        ("0 0 31 * *", ["2024-01-31 00:00", "2024-03-31 00:00", "2024-05-31 00:00"]),
        ("0 0 L * *", ["2024-01-31 00:00", "2024-02-29 00:00", "2024-03-31 00:00"]),
        ("0 0 * * FRIL", ["2024-01-26 00:00", "2024-02-23 00:00"]),
        ("0 0 * * 2#3", ["2024-01-16 00:00", "2024-02-20 00:00"]),
        ("0 0 * * 0", ["2024-01-07 00:00", "2024-01-14 00:00"]),
        ("0 0 * * 7", ["2024-01-07 00:00", "2024-01-14 00:00"]),
        ("0 0 13 * FRI", ["2024-01-05 00:00", "2024-01-12 00:00", "2024-01-13 00:00"]),
        ("0 12 1 1 *", ["2025-01-01 12:00"]),
    ],
)
def test_expressions_name_the_expected_runs(expression: str, runs: list[str]) -> None:
    """After noon of the first day of 2024."""
    assert first(expression, count=len(runs)) == runs


def test_both_days_must_match_if_the_schedule_says_so() -> None:
    """The Fridays that are the 13th."""
    assert first("0 0 13 * FRI", days="and", count=3) == [
        "2024-09-13 00:00",
        "2024-12-13 00:00",
        "2025-06-13 00:00",
    ]


def test_a_rare_day_is_found_decades_away() -> None:
    """A 29 February that is a Monday, across 2100, which has none."""
    after = to_instant(datetime(2072, 3, 1, tzinfo=UTC))
    assert first("0 0 29 2 MON", days="and", after=after) == ["2112-02-29 00:00"]


def test_a_day_that_never_comes_ends_the_search() -> None:
    """Within 50 years, it is not found."""
    assert next_after(Cron("0 0 30 2 MON", days="and"), NOON) is None


def test_an_expression_of_every_hour_says_how_often() -> None:
    """It follows the clock when that is changed."""
    assert [is_hourly(text) for text in ("@hourly", "*/5 0-23 1 * *", "0 */2 * * *", "* 9 * * *")] == [
        True,
        True,
        False,
        False,
    ]
