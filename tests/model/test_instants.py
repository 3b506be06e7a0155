"""Instants and durations are whole microseconds; datetimes and seconds become them exactly (S2)."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.model.instants import (
    DAY,
    HOUR,
    LAST_INSTANT,
    MINUTE,
    SECOND,
    to_datetime,
    to_instant,
    to_micros,
)

NEW_YORK = ZoneInfo("America/New_York")
ZONES = (UTC, NEW_YORK, ZoneInfo("Asia/Kathmandu"), ZoneInfo("Pacific/Apia"), timezone(timedelta(seconds=-1)))


class Vague(tzinfo):
    """A zone that does not know its own offset; such datetimes are naive, whatever `tzinfo` says."""

    def utcoffset(self, _moment: datetime | None) -> None:
        """Say nothing."""

    def dst(self, _moment: datetime | None) -> None:
        """Say nothing."""

    def tzname(self, _moment: datetime | None) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("moment", "instant"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC), 1),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), -1),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
        (datetime(2024, 11, 3, 1, 30, tzinfo=NEW_YORK, fold=0), 1_730_611_800 * SECOND),
        (datetime(2024, 11, 3, 1, 30, tzinfo=NEW_YORK, fold=1), 1_730_615_400 * SECOND),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), 253_402_300_799_999_999),
    ],
)
def test_an_aware_datetime_is_counted_exactly(moment: datetime, instant: int) -> None:
    """Whatever the zone, on both sides of the epoch, and in the hour that comes twice."""
    assert to_instant(moment) == instant


def test_the_last_instant_is_the_last_that_a_float_holds_with_all_before_it() -> None:
    """One store keeps instants as floats, in its sorted sets."""
    assert to_datetime(LAST_INSTANT) == datetime(2255, 6, 5, 23, 47, 34, 740_992, tzinfo=UTC)
    assert float(LAST_INSTANT - 1) != float(LAST_INSTANT) == float(LAST_INSTANT + 1)


@pytest.mark.parametrize("moment", [datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=Vague())])  # noqa: DTZ001
def test_a_naive_datetime_is_refused_and_named(moment: datetime) -> None:
    """A time without a zone means nothing to a store."""
    with pytest.raises(ValueError, match="2026-01-01T00:00:00 has no time zone"):
        to_instant(moment)


@settings(max_examples=100, deadline=None)
@given(st.datetimes(timezones=st.sampled_from(ZONES)))
def test_a_datetime_survives_the_way_in_and_out(moment: datetime) -> None:
    """What comes back is the same instant, in UTC."""
    back = to_datetime(to_instant(moment))
    assert back == moment.astimezone(UTC)
    assert back.tzinfo is UTC


@settings(max_examples=100, deadline=None)
@given(st.integers(-62_135_596_800 * SECOND, 253_402_300_799 * SECOND))
def test_an_instant_survives_the_way_out_and_in(instant: int) -> None:
    """No microsecond is lost to floating point."""
    assert to_instant(to_datetime(instant)) == instant


@pytest.mark.parametrize(
    ("duration", "micros"),
    [
        (0, 0),
        (1, SECOND),
        (60, MINUTE),
        (3600.0, HOUR),
        (timedelta(days=1), DAY),
        (timedelta(microseconds=1), 1),
        (timedelta(microseconds=-1), -1),
        (0.000_001, 1),
        (0.000_000_4, 0),
        (0.1, 100_000),
        (-2.5, -2_500_000),
        (timedelta.max, 86_399_999_999_999_999_999),
        (10**400, 10**406),
    ],
)
def test_a_duration_becomes_whole_microseconds(duration: timedelta | float, micros: int) -> None:
    """Numbers are seconds."""
    assert to_micros(duration) == micros
    assert isinstance(to_micros(duration), int)


@pytest.mark.parametrize("duration", [math.inf, -math.inf, math.nan, 1e308])
def test_a_duration_without_end_is_refused_and_shown(duration: float) -> None:
    """It could not be stored; the error is a ValueError like every other bad value."""
    with pytest.raises(ValueError, match=r"a duration is a finite number of seconds, not"):
        to_micros(duration)
