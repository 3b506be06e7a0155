"""Calendar periods in a time zone (S115): the clock changes, and time goes on."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from fairlane.model.instants import DAY, HOUR, to_datetime, to_instant
from fairlane.model.policy.periods import COMING, Per, coming_periods, is_zone, period_of


def _at(*parts: int, zone: str = "UTC") -> int:
    return to_instant(datetime(*parts, tzinfo=ZoneInfo(zone)))  # type: ignore[arg-type, misc]


@pytest.mark.parametrize("per", ["day", "week", "month"])
def test_the_coming_periods_reach_more_than_two_years_ahead(per: Per) -> None:
    """S115: so that a fleet that starts no worker goes on counting."""
    now = _at(2026, 11, 19, 20)
    starts = coming_periods(per, "Europe/Berlin", now)
    assert starts[1] <= now < starts[2]
    assert len(starts) == COMING[per] + 2
    assert starts[-1] - now > 2 * 365 * DAY
    assert all(earlier < later for earlier, later in pairwise(starts))


@pytest.mark.parametrize(
    ("per", "zone", "now", "start", "end"),
    [
        ("day", "Europe/Berlin", (2026, 3, 29, 1), (2026, 3, 28, 23), (2026, 3, 29, 22)),  # 23 hours
        ("day", "Europe/Berlin", (2026, 10, 25, 1), (2026, 10, 24, 22), (2026, 10, 25, 23)),  # 25 hours
        ("week", "UTC", (2026, 11, 19), (2026, 11, 16), (2026, 11, 23)),
        ("week", "UTC", (2026, 11, 16), (2026, 11, 16), (2026, 11, 23)),
        ("month", "America/New_York", (2026, 11, 1, 3), (2026, 10, 1, 4), (2026, 11, 1, 4)),
        ("month", "America/New_York", (2026, 11, 1, 4), (2026, 11, 1, 4), (2026, 12, 1, 5)),
        ("month", "UTC", (2028, 2, 29), (2028, 2, 1), (2028, 3, 1)),
        (
            "day",
            "Asia/Beirut",
            (2026, 3, 28, 22),
            (2026, 3, 28, 22),
            (2026, 3, 29, 21),
        ),  # skipped
        ("day", "America/Havana", (2026, 11, 1, 12), (2026, 11, 1, 4), (2026, 11, 2, 5)),
    ],
)
def test_a_period_is_that_of_the_zones_calendar(
    per: Per, zone: str, now: tuple[int, ...], start: tuple[int, ...], end: tuple[int, ...]
) -> None:
    """S115: also where midnight does not exist, or exists twice."""
    period = period_of(coming_periods(per, zone, _at(*now)), _at(*now))
    assert period is not None
    assert [to_datetime(one) for one in period] == [datetime(*one, tzinfo=UTC) for one in (start, end)]  # type: ignore[arg-type, misc]


def test_every_instant_around_a_change_of_clocks_is_in_one_period() -> None:
    """S115: the end of one is the start of the next, hour by hour."""
    for zone in ("Europe/Berlin", "America/Havana", "Asia/Beirut", "Pacific/Chatham"):
        for day in (_at(2026, 3, 26), _at(2026, 10, 22), _at(2026, 10, 30)):
            for hour in range(24 * 5):
                now = day + hour * HOUR
                starts = coming_periods("day", zone, now)
                period = period_of(starts, now)
                assert period is not None
                assert period[0] <= now < period[1]
                assert 22 * HOUR <= period[1] - period[0] <= 26 * HOUR


@pytest.mark.parametrize("per", ["day", "week", "month"])
def test_a_clock_that_is_set_back_finds_the_period_before(per: Per) -> None:
    """S115: what is spent then is spent in a period, and not in one that nobody knows."""
    now = _at(2026, 6, 1)  # a Monday
    starts = coming_periods(per, "UTC", now)
    assert period_of(starts, now - 1) == (starts[0], now)


def test_the_calendar_ends_where_dates_do() -> None:
    """S115: a clock far ahead breaks nothing."""
    starts = coming_periods("month", "UTC", _at(9997, 6, 1))
    assert to_datetime(starts[-1]).year == 9998
    assert len(starts) < COMING["month"]


@pytest.mark.parametrize("name", ["", "Mars", None, 3, "../../etc/passwd", "/etc/localtime", "Europe"])
def test_what_names_no_zone_is_none(name: object) -> None:
    """S115: a directory is none either."""
    assert not is_zone(name)
