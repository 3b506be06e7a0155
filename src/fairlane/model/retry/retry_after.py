"""Parse the HTTP header Retry-After: seconds, or a date in one of three formats. Reads no clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from fairlane.model.instants import Instant, to_instant

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = "(?P<month>" + "|".join(_MONTHS) + ")"
_TIME: Final = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"

_SECONDS: Final = re.compile(r"\d{1,12}(\.\d{1,6})?")
_DATES: Final = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"[a-z]{{3}}, (?P<day>\d\d) {_MONTH} (?P<year>\d{{4}}) {_TIME} GMT",
        rf"[a-z]{{6,9}}, (?P<day>\d\d)-{_MONTH}-(?P<year>\d\d) {_TIME} GMT",
        rf"[a-z]{{3}} {_MONTH} (?P<day>[ \d]\d) {_TIME} (?P<year>\d{{4}})",
    )
)
"""RFC 9110, 5.6.7: the current format, and two obsolete ones that must be read."""

_CENTURY: Final = 100
_SHORT_YEARS_FROM: Final = 1970
_LEAP: Final = 60


def seconds_in(text: str) -> float | None:
    """Parse a number of seconds; None if the text is none.

    >>> seconds_in(" 120 "), seconds_in("soon")
    (120.0, None)
    """
    found = text.strip()
    return float(found) if found.isascii() and _SECONDS.fullmatch(found) else None


def instant_in(text: str) -> Instant | None:
    """Parse an HTTP date; None if the text is none.

    >>> instant_in("Thu, 01 Jan 1970 00:01:00 GMT"), instant_in("tomorrow")
    (60000000, None)
    """
    for form in _DATES:
        found = form.fullmatch(text.strip())
        if found is None:
            continue
        part = {name: int(value) for name, value in found.groupdict().items() if name != "month"}
        year = part["year"]
        if year < _CENTURY:
            year += _SHORT_YEARS_FROM - _SHORT_YEARS_FROM % _CENTURY
            year += _CENTURY * (year < _SHORT_YEARS_FROM)
        second = min(part["second"], _LEAP - 1)  # a leap second is the one before
        try:
            moment = datetime(
                year,
                _MONTHS.index(found["month"].lower()) + 1,
                part["day"],
                part["hour"],
                part["minute"],
                second,
                tzinfo=UTC,
            )
        except ValueError:
            return None
        return to_instant(moment)
    return None
