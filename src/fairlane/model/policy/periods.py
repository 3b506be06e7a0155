"""When the periods of a budget begin: calendar days, weeks and months of a zone (S115). Reads no clock."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import Final, Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fairlane.model.instants import Instant, to_datetime, to_instant

Per: TypeAlias = Literal["day", "week", "month"]

COMING: Final[dict[Per, int]] = {"day": 800, "week": 270, "month": 120}
"""How many periods to come are written with the rules: each for more than two years."""

_LAST_YEAR: Final = 9998


def coming_periods(per: Per, timezone: str, now: Instant) -> tuple[Instant, ...]:
    """Return when the period of an instant and the one before began, and when the coming ones begin.

    The one before is for a clock that is set back: what is spent then belongs to a period, too. A day begins
    at midnight of the zone. Where the clocks skip midnight it begins at the skip, and where midnight comes
    twice, at the first.

    >>> from datetime import UTC
    >>> november = to_instant(datetime(2026, 11, 19, tzinfo=UTC))
    >>> [to_datetime(one).isoformat() for one in coming_periods("month", "Europe/Berlin", november)[1:3]]
    ['2026-10-31T23:00:00+00:00', '2026-11-30T23:00:00+00:00']
    """
    zone = ZoneInfo(timezone)
    first = _first_day(per, to_datetime(now).astimezone(zone).date())
    before = _first_day(per, first - timedelta(days=1))
    days = islice(_days(per, before), COMING[per] + 2)
    return tuple(to_instant(datetime.combine(day, time(), zone)) for day in days)


def is_zone(name: object) -> bool:
    """Whether a value is the name of a time zone that this machine knows.

    >>> is_zone("Europe/Berlin"), is_zone("Mars"), is_zone(None), is_zone("../etc/passwd")
    (True, False, False, False)
    """
    if not isinstance(name, str):
        return False
    try:
        ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return False
    return True


def period_of(starts: Sequence[Instant], now: Instant) -> tuple[Instant, Instant] | None:
    """Return the start and the end of the period of an instant; None if the calendar does not know both.

    >>> period_of((10, 20, 30), 20), period_of((10, 20, 30), 30), period_of((10, 20), 5)
    ((20, 30), None, None)
    """
    place = bisect_right(starts, now)
    return (starts[place - 1], starts[place]) if 0 < place < len(starts) else None


def _first_day(per: Per, day: date) -> date:
    if per == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if per == "month" else day


def _days(per: Per, day: date) -> Iterator[date]:
    """Yield the first days of a period and of all after it."""
    while day.year <= _LAST_YEAR:
        yield day
        if per == "month":
            day = (day + timedelta(days=31)).replace(day=1)
        else:
            day += timedelta(days=7 if per == "week" else 1)
