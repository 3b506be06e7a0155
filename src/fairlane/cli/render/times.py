"""Parse and format times and durations for people. Reads no clock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from fairlane.model.durations import ago
from fairlane.model.instants import (
    LAST_INSTANT,
    Instant,
    to_datetime,
    to_instant,
)

_SECONDS: Final[Mapping[str, float]] = {"": 1, "ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST: Final = 36_500 * 86_400
"""A hundred years, in seconds: every store can hold an instant that far from now."""
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd]?)")


def timestamp(instant: Instant) -> str:
    """Format an instant to the second.

    >>> timestamp(0)
    '1970-01-01 00:00:00 UTC'
    """
    return f"{to_datetime(instant):%Y-%m-%d %H:%M:%S} UTC"


def timestamp_and_age(instant: Instant | None, now: Instant) -> str:
    """Format an instant as a timestamp and as its distance from now.

    >>> timestamp_and_age(0, 90_000_000)
    '1970-01-01 00:00:00 UTC (1m 30s ago)'
    """
    return "-" if instant is None else f"{timestamp(instant)} ({ago(instant, now)})"


def parse_duration(text: str) -> float:
    """Parse a number of seconds, or a number with ms, s, m, h or d. A ValueError explains the format.

    >>> parse_duration("90"), parse_duration("5m"), parse_duration("1.5h"), parse_duration("250ms")
    (90.0, 300.0, 5400.0, 0.25)
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        message = f"{text[:40]!r} is not a duration; use seconds, or a number with ms, s, m, h or d (90s, 2h)"
        raise ValueError(message)
    seconds = float(found[1]) * _SECONDS[found[2]]
    if seconds > _LONGEST:
        message = f"{text[:40]!r} is too long; the maximum is {_LONGEST // 86400}d"
        raise ValueError(message)
    return seconds


def parse_time(text: str) -> datetime:
    """Parse an instant with its time zone. A ValueError says what is missing.

    >>> parse_time("2026-11-15T17:00:00+01:00").utctimetuple().tm_hour
    16
    """
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        message = f"{text[:40]!r} is not a time; write it as 2026-11-15T17:00:00Z"
        raise ValueError(message) from None
    if found.tzinfo is None:
        message = f"{text[:40]!r} has no time zone; add Z for UTC, or an offset such as +01:00"
        raise ValueError(message)
    try:
        is_known = 0 <= to_instant(found) <= LAST_INSTANT
    except OverflowError:
        is_known = False
    if not is_known:
        message = f"{text[:40]!r} is out of range; give a time from 1970 to 2255"
        raise ValueError(message)
    return found
