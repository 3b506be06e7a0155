"""Say in words when a timing runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cronsim.explain import Expression

from fairlane.model.instants import DAY, HOUR, MINUTE, SECOND, Micros, to_datetime
from fairlane.model.schedule.cron import read_expression
from fairlane.model.schedule.timing import At, Cron, Every, Timing, Window
from fairlane.model.schedule.windows import read_weekday
from fairlane.model.schedule.zones import find_zone

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_UNITS: Final = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second"))


def describe(timing: Timing) -> str:
    """Return a timing without problems in words, with its zone.

    >>> describe(Cron("0 9 * * 1", timezone="America/New_York"))
    'At 09:00 on Monday, New York'
    >>> describe(Every(interval=300 * SECOND, between=("09:30", "16:00"), weekdays=("MON", "FRI")))
    'Every 5 minutes, from 09:30 to 16:00, on Monday and Friday, UTC'
    >>> describe(Every(interval=HOUR)), describe(At(0))
    ('Every hour', 'Once, at 1970-01-01 00:00:00 UTC')
    >>> describe(At(0, timezone="America/Chicago"))
    'Once, at 1969-12-31 18:00:00, Chicago'
    """
    match timing:
        case Cron():
            # The first field is that of the seconds.
            words = Expression(["0", *read_expression(timing.expression)[0].split()]).explain()
            both = ["only where both days match"] if timing.days == "and" else []
            return ", ".join([words, *both, *_window(timing), city(timing.timezone)])
        case Every():
            window = list(_window(timing))
            return ", ".join([*_interval(timing), *window, *([city(timing.timezone)] if window else [])])
        case _:
            return f"Once, at {_moment(timing.instant)}" if timing.timezone == "UTC" else _once(timing)


def city(zone: str) -> str:
    """Return the short name of a zone.

    >>> city("America/Argentina/Buenos_Aires"), city("UTC")
    ('Buenos Aires', 'UTC')
    """
    return zone.rpartition("/")[2].replace("_", " ")


def _interval(every: Every) -> Iterator[str]:
    size, unit = next(((size, unit) for size, unit in _UNITS if every.interval % size == 0), _UNITS[-1])
    number = every.interval / size
    yield f"Every {unit}" if number == 1 else f"Every {number:.6g} {unit}s"
    if every.anchor % every.interval:
        yield f"counted from {_moment(every.anchor)}"


def _window(window: Window) -> Iterator[str]:
    if window.between:
        yield f"from {window.between[0]} to {window.between[1]}"
    if window.weekdays:
        names = [_DAYS[number] for number in sorted(set(map(read_weekday, window.weekdays)))]
        yield "on " + " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    if window.holidays:
        yield f"not on {len(window.holidays)} holiday{'s' * (len(window.holidays) > 1)}"


def _once(timing: At) -> str:
    local = to_datetime(timing.instant).astimezone(find_zone(timing.timezone))
    return f"Once, at {local:%Y-%m-%d %H:%M:%S}, {city(timing.timezone)}"


def _moment(instant: Micros) -> str:
    return f"{to_datetime(instant):%Y-%m-%d %H:%M:%S} UTC"
