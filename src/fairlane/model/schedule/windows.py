"""When a window of local times is open. Knows no zone."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from fairlane.model.schedule.timing import Window

WEEKDAYS: Final = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
MOST_HOLIDAYS: Final = 1000

_TIME: Final = re.compile(r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DAY: Final = timedelta(days=1)


class Hours(NamedTuple):
    """A window as values: two times of day, the numbers of its weekdays (Monday is 0), its holidays."""

    first: time
    last: time
    weekdays: frozenset[int]
    holidays: frozenset[date]

    def opening(self, local: datetime) -> datetime:
        """Return the first local time, from the given one on, at which the window is open.

        >>> hours = hours_of(Window(between=("09:30", "16:00"), weekdays=("MON", "FRI")))
        >>> [str(hours.opening(datetime(2026, 11, 20, hour))) for hour in (9, 16, 17)]  # a Friday
        ['2026-11-20 09:30:00', '2026-11-20 16:00:00', '2026-11-23 09:30:00']
        """
        day = local.date()
        if self._is_open_on(day):
            at = local.time()
            if self.first <= self.last:
                if at <= self.last:
                    return local if at >= self.first else datetime.combine(day, self.first)
            elif at <= self.last or at >= self.first:
                return local
            else:
                return datetime.combine(day, self.first)
        day += _DAY
        while not self._is_open_on(day):
            day += _DAY
        return datetime.combine(day, self.first if self.first <= self.last else time.min)

    def _is_open_on(self, day: date) -> bool:
        return day.weekday() in self.weekdays and day not in self.holidays


def hours_of(window: Window) -> Hours | None:
    """Return a window as values; None if it is always open."""
    if window.between is None and not window.weekdays and not window.holidays:
        return None
    return _hours(window.between, window.weekdays, window.holidays)


@lru_cache(maxsize=1024)
def _hours(between: tuple[str, str] | None, weekdays: tuple[str, ...], holidays: tuple[str, ...]) -> Hours:
    first, last = map(read_time, between) if between else (time.min, time.max)
    numbers = frozenset(map(read_weekday, weekdays)) or frozenset(range(len(WEEKDAYS)))
    return Hours(first, last, numbers, frozenset(map(read_date, holidays)))


def read_time(text: str) -> time:
    """Return a time of day; ValueError says how to write one.

    >>> read_time("09:30"), read_time("16:00:30")
    (datetime.time(9, 30), datetime.time(16, 0, 30))
    """
    if not _TIME.fullmatch(text):
        message = f"{text[:40]!r} is not a time of day; write it as 09:30, up to 23:59:59"
        raise ValueError(message)
    return time.fromisoformat(text)


def read_weekday(text: str) -> int:
    """Return the number of a weekday, Monday as 0; ValueError has the names.

    >>> read_weekday("sun")
    6
    """
    if text.upper() not in WEEKDAYS:
        message = f"{text[:40]!r} is not a weekday; use {', '.join(WEEKDAYS)}"
        raise ValueError(message)
    return WEEKDAYS.index(text.upper())


def read_date(text: str) -> date:
    """Return a date; ValueError says how to write one.

    >>> read_date("2026-12-25")
    datetime.date(2026, 12, 25)
    """
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    message = f"{text[:40]!r} is not a date; write it as 2026-12-25"
    raise ValueError(message)
