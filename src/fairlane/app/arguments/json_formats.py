"""Read values for which JSON has no type, such as dates and decimals, from their text form.

Knows no schema and no path: reads one value, or raises ValueError.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from fairlane.app.arguments.type_hints import exact
from fairlane.app.config.units import seconds_of


class Format(NamedTuple):
    """A `format` of JSON Schema: its Python type, the function that reads it, and how to write it."""

    kind: type
    read: Callable[[Any], Any]
    form: str


def read_format(name: str, value: Any) -> Any:
    """Return the value of a text in this format; a value that has the type already is returned as it is.

    ValueError otherwise; it does not show the value.

    >>> read_format("date", "2026-07-01"), read_format("duration", 90), read_format("decimal", "1.20")
    (datetime.date(2026, 7, 1), datetime.timedelta(seconds=90), Decimal('1.20'))
    """
    known = FORMATS[name]
    if issubclass(type(value), known.kind):
        return value
    try:
        return known.read(value)
    except (ValueError, TypeError, OverflowError, InvalidOperation, msgspec.ValidationError):
        raise ValueError(known.form) from None


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    return value


def _datetime(value: Any) -> datetime:
    moment = datetime.fromisoformat(_text(value))
    if moment.utcoffset() is None:
        raise ValueError
    return moment


def _duration(value: Any) -> timedelta:
    if exact(value) is str and value.lstrip("+-")[:1] in {"P", "p"}:
        return msgspec.convert(value, timedelta)
    if exact(value) in {int, float}:
        return timedelta(seconds=value)
    return timedelta(seconds=seconds_of(_text(value)))


def _decimal(value: Any) -> Decimal:
    # Floats are refused: 0.1 would become 0.1000000000000000055511151231257827.
    found = Decimal(value if type(value) is int else _text(value))
    if not found.is_finite():
        raise ValueError
    return found


def _by(read: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda value: read(_text(value))


FORMATS: Final[Mapping[str, Format]] = {
    "date-time": Format(
        datetime,
        _datetime,
        'a date and time with Z or an offset, as in "2026-07-01T10:00:00Z" or "2026-07-01T12:00:00+02:00"',
    ),
    "date": Format(date, _by(date.fromisoformat), 'a date, as in "2026-07-01"'),
    "time": Format(time, _by(time.fromisoformat), 'a time of day, as in "09:30:00"'),
    "duration": Format(timedelta, _duration, 'seconds, or a duration as in "90s", "5m", "2h" or "PT1H30M"'),
    "decimal": Format(Decimal, _decimal, 'a number in quotes, as in "1.20", or one without fraction'),
    "uuid": Format(UUID, _by(UUID), 'a UUID, as in "0198c8e4-5b7e-7000-8000-0123456789ab"'),
    "byte": Format(bytes, _by(partial(b64decode, validate=True)), 'bytes in base64, as in "AP/+"'),
}
