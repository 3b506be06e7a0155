"""Read what stands behind a field's colon, a text, a number, a duration or a time, as a test."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from fairlane.model.instants import DAY, HOUR, LAST_INSTANT, MINUTE, SECOND, Instant, Micros, to_instant
from fairlane.model.query.syntax import QueryError, WrittenValue

Test: TypeAlias = Callable[[Any], bool]
"""Whether a value of a job, which is never None, is one that was asked for."""

_SIGNED: Final = re.compile(r"(>=|<=|>|<)(.*)", re.DOTALL)
_UNITS: Final = {"ms": 1_000, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
_DURATION: Final = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d|w)")
_NUMBER: Final = re.compile(r"-?\d{1,18}(?:\.\d{1,9})?")
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


def text_test(value: WrittenValue, text: str) -> Test:
    """Return a test of a text: the whole of it, or its beginning if the value ends in a `*`.

    >>> text_test(WrittenValue("mail.*", 0), "")("mail.send")
    True
    """
    wanted = value.text
    if value.is_quoted or "*" not in wanted:
        return lambda found: bool(found == wanted)
    if "*" in wanted[:-1]:
        problem = "a * may only stand at the end; put the value in quotes if it is meant as it is"
        raise QueryError(problem, text, value.position + wanted.index("*"))
    start = wanted[:-1]
    return lambda found: str(found).startswith(start)


def part_test(value: WrittenValue, _: str) -> Test:
    """Return a test of whether a text contains the value, in any case of its letters."""
    wanted = value.text.casefold()
    return lambda found: wanted in str(found).casefold()


def number_test(value: WrittenValue, text: str) -> Test:
    """Return a test of a number: `3`, `>=3`, `<3`, `2..5`.

    >>> number_test(WrittenValue("2..5", 0), "")(5), number_test(WrittenValue(">2", 0), "")(2)
    (True, False)
    """
    return _range_test(value, text, _number, "a number, as in 3, >=3 or 2..5")


def duration_test(value: WrittenValue, text: str) -> Test:
    """Return a test of a duration in microseconds: `>5m`, `10s..1m`."""
    return _range_test(value, text, _duration, "a duration, as in >5m, <=90s or 1h..2h")


def time_test(value: WrittenValue, text: str, now: Instant) -> Test:
    """Return a test of an instant: `2h` (since two hours ago), `today`, `2026-11-18`, `13:40..14:05`, `>2h`.

    A time without a date is today's; all are in UTC. `>2h` is longer ago than two hours, as one would say it.
    """
    wanted = "a time, as in 2h, today, 2026-11-18, 13:40..14:05 or <2026-11-18T08:00"
    sign, rest = _sign(value)
    if sign and _DURATION.fullmatch(rest):
        ago = now - _read(value, rest, text, _duration, wanted)
        return (lambda found: found < ago) if ">" in sign else (lambda found: found >= ago)
    if not sign and _DURATION.fullmatch(rest):
        since = now - _read(value, rest, text, _duration, wanted)
        return lambda found: bool(found >= since)
    first, dots, last = rest.partition("..") if not value.is_quoted else (rest, "", "")
    start, end = _read(value, first, text, lambda one: _times(one, now), wanted)
    if dots:
        _, end = _read(value, last, text, lambda one: _times(one, now), wanted)
    tests: dict[str, Test] = {
        "": lambda found: start <= found < end,
        ">": lambda found: found >= end,
        ">=": lambda found: found >= start,
        "<": lambda found: found < start,
        "<=": lambda found: found < end,
    }
    return tests[sign]


def json_test(value: WrittenValue, text: str) -> Test:
    """Return a test of a value in arguments or metadata: as a text, or as a number if it looks like one."""
    plain = text_test(value, text) if not _sign(value)[0] and ".." not in value.text else None
    try:
        number = None if value.is_quoted else number_test(value, text)
    except QueryError:
        number = None
        if plain is None:
            raise

    def test(found: Any) -> bool:
        if isinstance(found, bool) or found is None:
            return not value.is_quoted and value.text == {True: "true", False: "false", None: "null"}[found]
        if isinstance(found, int | float):
            return number is not None and number(found)
        return isinstance(found, str) and plain is not None and plain(found)

    return test


def _range_test(value: WrittenValue, text: str, read: Callable[[str], Any], wanted: str) -> Test:
    sign, rest = _sign(value)
    if not sign and ".." in rest and not value.is_quoted:
        first, _, last = rest.partition("..")
        low, high = (_read(value, end, text, read, wanted) for end in (first, last))
        return lambda found: bool(low <= found <= high)
    bound = _read(value, rest, text, read, wanted)
    tests: dict[str, Test] = {
        "": lambda found: bool(found == bound),
        ">": lambda found: bool(found > bound),
        ">=": lambda found: bool(found >= bound),
        "<": lambda found: bool(found < bound),
        "<=": lambda found: bool(found <= bound),
    }
    return tests[sign]


def _sign(value: WrittenValue) -> tuple[str, str]:
    """Return the sign before a value, and the rest of it."""
    found = None if value.is_quoted else _SIGNED.fullmatch(value.text)
    return ("", value.text) if found is None else (found[1], found[2])


def _read(value: WrittenValue, part: str, text: str, read: Callable[[str], Any], wanted: str) -> Any:
    try:
        return read(part)
    except ValueError:
        problem = f"{part[:40]!r} is not {wanted}"
        raise QueryError(problem, text, value.position) from None


def _number(text: str) -> float:
    if _NUMBER.fullmatch(text) is None:
        raise ValueError
    return float(text) if "." in text else int(text)


def _duration(text: str) -> Micros:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError
    return min(round(float(found[1]) * _UNITS[found[2]]), LAST_INSTANT)


def _times(text: str, now: Instant) -> tuple[Instant, Instant]:
    """Return the first instant that a written time means, and the first one after it."""
    today = now - now % DAY
    if text in {"today", "yesterday"}:
        start = today if text == "today" else today - DAY
        return start, start + DAY
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        hours, minutes, seconds = int(clock[1]), int(clock[2]), int(clock[3] or 0)
        if hours > 23 or minutes > 59 or seconds > 59:  # noqa: PLR2004 (a day's own numbers)
            raise ValueError
        start = today + hours * HOUR + minutes * MINUTE + seconds * SECOND
        return start, start + (MINUTE if clock[3] is None else SECOND)
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    length = timedelta(days=1) if _DATE.fullmatch(text) else timedelta(seconds=1)
    start = max(0, to_instant(moment))
    return start, start + length // timedelta(microseconds=1)
