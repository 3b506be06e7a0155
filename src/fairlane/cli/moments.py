"""Read and write times for people: how long ago, until when, how long. Reads no clock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from fairlane.model.instants import (
    DAY,
    HOUR,
    LAST_INSTANT,
    MINUTE,
    SECOND,
    Instant,
    Micros,
    to_datetime,
    to_instant,
)

_UNITS: Final[tuple[tuple[str, Micros], ...]] = (("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND))
_SECONDS: Final[Mapping[str, float]] = {"": 1, "ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST: Final = 36_500 * 86_400
"""A hundred years, in seconds: from now on, every store can keep what is so long away."""
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd]?)")


def span(duration: Micros) -> str:
    """Write a duration in its two largest units.

    >>> span(1_500_000), span(200 * SECOND), span(26 * HOUR), span(DAY), span(0)
    ('1.5s', '3m 20s', '1d 2h', '1d', '0s')
    """
    if duration < 10 * SECOND:
        return f"{duration / SECOND:.1f}s".replace(".0s", "s")
    for at, (unit, size) in enumerate(_UNITS):
        if duration >= size:
            rest = _UNITS[at + 1] if at + 1 < len(_UNITS) else None
            more = duration % size // rest[1] if rest else 0
            return f"{duration // size}{unit}" + (f" {more}{rest[0]}" if rest and more else "")
    return "0s"


def ago(instant: Instant | None, now: Instant) -> str:
    """Say how far away an instant is.

    >>> ago(0, 90 * SECOND), ago(90 * SECOND, 0), ago(5, 5), ago(None, 5)
    ('1m 30s ago', 'in 1m 30s', 'now', '-')
    """
    if instant is None:
        return "-"
    if abs(instant - now) < SECOND // 10:
        return "now"
    return f"{span(now - instant)} ago" if instant < now else f"in {span(instant - now)}"


def stamp(instant: Instant) -> str:
    """Write an instant to the second.

    >>> stamp(0)
    '1970-01-01 00:00:00 UTC'
    """
    return f"{to_datetime(instant):%Y-%m-%d %H:%M:%S} UTC"


def moment(instant: Instant | None, now: Instant) -> str:
    """Write an instant both ways.

    >>> moment(0, 90 * SECOND)
    '1970-01-01 00:00:00 UTC (1m 30s ago)'
    """
    return "-" if instant is None else f"{stamp(instant)} ({ago(instant, now)})"


def iso(moment: datetime | Instant | None) -> str | None:
    """Write an instant for programs.

    >>> iso(1)
    '1970-01-01T00:00:00.000001Z'
    """
    if moment is None:
        return None
    at = to_datetime(moment) if isinstance(moment, int) else moment.astimezone(UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"


def read_duration(text: str) -> float:
    """Read a number of seconds, or a number with ms, s, m, h or d; ValueError says so.

    >>> read_duration("90"), read_duration("5m"), read_duration("1.5h"), read_duration("250ms")
    (90.0, 300.0, 5400.0, 0.25)
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        message = (
            f"{text[:40]!r} is no duration; use seconds, or a number with ms, s, m, h or d, as in 90s or 2h"
        )
        raise ValueError(message)
    seconds = float(found[1]) * _SECONDS[found[2]]
    if seconds > _LONGEST:
        message = f"{text[:40]!r} is too long; {_LONGEST // 86400}d at the most"
        raise ValueError(message)
    return seconds


def read_moment(text: str) -> datetime:
    """Read an instant with its time zone; ValueError says what is missing.

    >>> read_moment("2026-11-15T17:00:00+01:00").astimezone(UTC).hour
    16
    """
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        message = f"{text[:40]!r} is no time; write it as 2026-11-15T17:00:00Z"
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
