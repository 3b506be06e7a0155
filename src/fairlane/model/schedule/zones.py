"""Time zones by name, and the instants at which their clocks are changed.

Zone data comes from the system, else from the package tzdata: `zoneinfo` reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from fairlane.model.instants import DAY, Instant, Micros, to_datetime, to_instant

MOST_YEARS: Final = 50
"""How far ahead is looked for a slot: a 29 February that is a Monday may be 40 years away."""

_OF_THE_MACHINE: Final = frozenset({"localtime", "posixrules", "Factory"})
_LONGEST: Final = 60
_EXAMPLES: Final = "name one as Europe/Berlin or UTC"
_MICRO: Final = timedelta(microseconds=1)


class ZoneSpan(NamedTuple):
    """A time in which the clock of a zone is not changed, the end excluded.

    `before` is the offset from UTC that held until its start, `after` the one from its end on. They may be
    the same: a long span is cut.
    """

    start: Instant
    end: Instant
    offset: Micros
    before: Micros
    after: Micros


class _ClockChange(NamedTuple):
    at: Instant
    offset: Micros


def find_zone(name: str) -> ZoneInfo:
    """Return a zone; ValueError has the nearest names.

    >>> find_zone("Europe/Berlyn")
    Traceback (most recent call last):
    ValueError: 'Europe/Berlyn' is not a time zone; use Europe/Berlin or Europe/Jersey or Europe/Dublin
    """
    try:
        if name not in _OF_THE_MACHINE:
            return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # the last for the name of a folder, as "America"
        pass
    message = f"{name[:_LONGEST]!r} is not a time zone; {zone_hint(name)}"
    raise ValueError(message)


def zone_hint(name: str) -> str:
    """Return what to write instead of a name that is no zone.

    >>> zone_hint("berlin"), zone_hint("New York"), zone_hint("local time")
    ('use Europe/Berlin', 'use America/New_York', 'name one as Europe/Berlin or UTC')
    """
    wanted = name[:_LONGEST].lower().replace(" ", "_")
    names = {(zone if "/" in name else _city(zone)).lower(): zone for zone in _names()}
    near = [names[wanted]] if wanted in names else [names[text] for text in get_close_matches(wanted, names)]
    return f"use {' or '.join(near)}" if near else _EXAMPLES


def _city(zone: str) -> str:
    return zone.rpartition("/")[2]


@lru_cache(maxsize=1)
def _names() -> tuple[str, ...]:
    return tuple(sorted(available_timezones() - _OF_THE_MACHINE))


def forget_zones() -> None:
    """Read zone data again from now on, since it has changed."""
    ZoneInfo.clear_cache()
    _names.cache_clear()
    _changes.cache_clear()


def offset_at(zone: ZoneInfo, instant: Instant) -> Micros:
    """Return the offset of a zone's clock from UTC.

    >>> offset_at(ZoneInfo("Asia/Kolkata"), 0) // 60_000_000
    330
    """
    moment = to_datetime(instant)
    return (moment.astimezone(zone).replace(tzinfo=None) - moment.replace(tzinfo=None)) // _MICRO


def spans(zone: ZoneInfo, since: Instant) -> Iterator[ZoneSpan]:
    """Return the spans of a zone in order, from the one that contains `since` to `MOST_YEARS` later.

    >>> from itertools import islice
    >>> berlin = spans(ZoneInfo("Europe/Berlin"), to_instant(datetime(2026, 3, 1, tzinfo=UTC)))
    >>> [(str(to_datetime(span.end)), span.after) for span in islice(berlin, 2)]
    [('2026-03-29 01:00:00+00:00', 7200000000), ('2026-10-25 01:00:00+00:00', 3600000000)]
    """
    first = to_datetime(since).year - 1
    start = _new_year(first)
    offset = before = offset_at(zone, start)
    for year in range(first, first + MOST_YEARS + 2):
        for at, after in _changes(zone, year):
            if at > since:
                yield ZoneSpan(start, at, offset, before, after)
            start, before, offset = at, offset, after
        end = _new_year(year + 1)
        # A span that begins with a change of this year stays whole: what the change has moved lies in it.
        if start <= _new_year(year):
            if end > since:
                yield ZoneSpan(start, end, offset, before, offset)
            start, before = end, offset


@lru_cache(maxsize=4096)
def _changes(zone: ZoneInfo, year: int) -> tuple[_ClockChange, ...]:
    """Return the changes of a zone's clock in a year: since 1970, no two have been within six days."""
    changes: list[_ClockChange] = []
    at, until = _new_year(year), _new_year(year + 1)
    offset = offset_at(zone, at)
    while at < until:
        later = min(at + DAY, until)
        after = offset_at(zone, later)
        if after != offset:
            changes.append(_ClockChange(_first_with(zone, after, at, later), after))
        at, offset = later, after
    return tuple(changes)


def _first_with(zone: ZoneInfo, offset: Micros, low: Instant, high: Instant) -> Instant:
    """Return the first instant with an offset that holds at `high` and not at `low`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if offset_at(zone, middle) == offset else (middle, high)
    return high


def _new_year(year: int) -> Instant:
    return to_instant(datetime(year, 1, 1, tzinfo=UTC))
