"""Convert datetimes and durations of the public API to whole microseconds and back. Reads no clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

Instant: TypeAlias = int
"""Microseconds since 1970-01-01 UTC: the only form of an instant in model, contract and stores (S2)."""

Micros: TypeAlias = int
"""A duration in whole microseconds."""

Duration: TypeAlias = timedelta | float
"""A duration in the public API; a number is seconds."""

LAST_INSTANT: Final[Instant] = 2**53
"""The largest instant a store accepts, in 2255: up to here a float represents each exactly."""

MILLISECOND: Micros = 1000
SECOND: Micros = 1_000_000
MINUTE: Micros = 60 * SECOND
HOUR: Micros = 60 * MINUTE
DAY: Micros = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)


def to_instant(moment: datetime) -> Instant:
    """Return the microseconds since the epoch, exact in any time zone. Refuses naive datetimes.

    >>> to_instant(datetime(1970, 1, 1, 1, tzinfo=UTC))
    3600000000
    """
    if moment.tzinfo is None or moment.utcoffset() is None:
        message = f"{moment.isoformat()} has no time zone"
        raise ValueError(message)
    return (moment - _EPOCH) // _MICRO


def to_datetime(instant: Instant) -> datetime:
    """Return the instant as an aware UTC datetime.

    >>> to_datetime(3_600_000_001).isoformat()
    '1970-01-01T01:00:00.000001+00:00'
    """
    return _EPOCH + timedelta(microseconds=instant)


def to_micros(duration: Duration) -> Micros:
    """Round a duration to whole microseconds; ValueError if it is infinite or not a number.

    >>> to_micros(1.5), to_micros(timedelta(minutes=1))
    (1500000, 60000000)
    """
    if isinstance(duration, timedelta):
        return duration // _MICRO
    try:
        return round(duration * SECOND)
    except (OverflowError, ValueError):
        message = f"a duration is a finite number of seconds, not {duration!r}"
        raise ValueError(message) from None


def iso(at: datetime | Instant | None) -> str | None:
    """Format an instant for programs.

    >>> iso(1), iso(datetime(1970, 1, 1, 1, tzinfo=UTC)), iso(None)
    ('1970-01-01T00:00:00.000001Z', '1970-01-01T01:00:00.000000Z', None)
    """
    if at is None:
        return None
    moment = to_datetime(at) if isinstance(at, int) else at.astimezone(UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"
