"""Read cron expressions, and find the local times that they name (S106).

cronsim finds them. It is given five fields of numbers, since it refuses `?`, `FRIL`, `@hourly` and ranges
that end on a Sunday, takes a sixth field and steps without meaning, and does not say what is allowed.
"""

from __future__ import annotations

import re
from copy import copy
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from cronsim import CronSim, CronSimError

from fairlane.model.errors import Problem

NICKNAMES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
LONGEST: Final = 500

_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_SUNDAY: Final = 7
_VALUE: Final = "[0-9]{1,4}|[A-Z]{3}"
_ITEM: Final = re.compile(f"(?:\\*|({_VALUE})(?:-({_VALUE}))?)(?:/([0-9]{{1,4}}))?")
_DAY_IN_MONTH: Final = re.compile(f"({_VALUE})(L|#[1-5])")
_FORMS: Final = "* for all, lists as 1,5, ranges as 1-5, steps as */5"
_HOURS: Final = 24


class _CronField(NamedTuple):
    """One of the five fields: its values, names for them, other items, what it allows in words."""

    name: str
    low: int
    high: int
    names: tuple[str, ...]
    others: dict[str, str]
    allowed: str

    def number(self, text: str) -> int | None:
        """Return the number of a value; None if it is not one of this field."""
        if text in self.names:
            return self.names.index(text) + self.low
        return int(text) if text.isdecimal() and self.low <= int(text) <= self.high else None


_OF_MONTH: Final = "1-31, L for the last day, LW for the last from MON to FRI"
_OF_WEEK: Final = "0-7, SUN-SAT, FRIL for the last Friday, TUE#3 for the third Tuesday"
_ANY_DAY: Final = {"?": "*"}
_LAST_DAYS: Final = {"L": "L", "LW": "LW"}
_FIELDS: Final = (
    _CronField("minute", 0, 59, (), {}, "0-59"),
    _CronField("hour", 0, 23, (), {}, "0-23"),
    _CronField(
        "day of month",
        1,
        31,
        (),
        _ANY_DAY | _LAST_DAYS,
        _OF_MONTH,
    ),
    _CronField("month", 1, 12, _MONTHS, {}, "1-12, JAN-DEC"),
    _CronField(
        "day of week",
        0,
        _SUNDAY,
        _DAYS,
        _ANY_DAY,
        _OF_WEEK,
    ),
)


def read_expression(expression: str) -> tuple[str, list[Problem]]:
    """Return an expression as cronsim takes it, and all that is wrong with it.

    >>> [read_expression(text)[0] for text in ("@hourly", "0 9 ? jan-mar FriL", "0 9 * * sat-sun,tue#3")]
    ['0 * * * *', '0 9 * 1-3 5L', '0 9 * * 6-7,2#3']
    >>> print(read_expression("61 9 * * *")[1][0].text)
    cron: minute '61' is not allowed; use 0-59, * for all, lists as 1,5, ranges as 1-5, steps as */5
    """
    parts, problems = _five_fields(expression.strip())
    fields: list[str] = []
    for field, part in zip(_FIELDS, parts, strict=False):
        items = [_item(field, item) for item in part.split(",")]
        if None in items:
            problems.append(
                _wrong(f"{field.name} {part[:40]!r} is not allowed", f"use {field.allowed}, {_FORMS}")
            )
        # What a list says beside all values means nothing; cronsim looks at the first letter alone.
        fields.append("*" if "*" in items else ",".join(filter(None, items)))
    text = " ".join(fields)
    if not problems:
        try:
            _compiled(text, "or")
        except CronSimError:
            problems.append(_wrong(f"month {fields[3]} has no day {fields[2]}", "choose a day that it has"))
    return text, problems


def _five_fields(text: str) -> tuple[list[str], list[Problem]]:
    """Return the five fields in capitals, or none and why."""
    if text.startswith("@"):
        if text.lower() in NICKNAMES:
            return NICKNAMES[text.lower()].split(), []
        near = get_close_matches(text[:40].lower(), NICKNAMES, 1) or NICKNAMES
        return [], [_wrong(f"{text[:40]!r} is not a name of an expression", f"use {', '.join(near)}")]
    if len(text) > LONGEST:
        return [], [_wrong(f"has {len(text)} characters", f"use {LONGEST} at the most")]
    parts = text.upper().split()
    if len(parts) == len(_FIELDS):
        return parts, []
    extra = ": seconds and years are not offered" if len(parts) > len(_FIELDS) else ""
    names = ", ".join(field.name for field in _FIELDS)
    return [], [_wrong(f"has {len(parts)} fields{extra}", f"write five, {names}, as 30 9 * * MON-FRI")]


def _wrong(message: str, hint: str) -> Problem:
    return Problem(0, "cron", message, hint)


def _item(field: _CronField, item: str) -> str | None:
    """Return one item of a field's list with numbers for names; None if it is not allowed."""
    if item in field.others:
        return field.others[item]
    if field.high == _SUNDAY and (found := _DAY_IN_MONTH.fullmatch(item)):
        day = field.number(found[1])
        return None if day is None else f"{day}{found[2]}"
    match = _ITEM.fullmatch(item)
    if not match or (match[3] and not 1 <= int(match[3]) <= field.high):
        return None
    step = f"/{match[3]}" if match[3] else ""
    if not match[1]:
        return f"*{step}"
    low = field.number(match[1])
    high = field.number(match[2] or match[1])
    if low is None or high is None:
        return None
    if not match[2]:
        return f"{low}{step}"
    if low and high == 0 and field.high == _SUNDAY:
        high = _SUNDAY
    return f"{low}-{high}{step}" if low <= high else None


@lru_cache(maxsize=4096)
def _compiled(text: str, days: Literal["or", "and"]) -> CronSim:
    found = CronSim(text, datetime(1970, 1, 1))  # noqa: DTZ001 (it looks for local times)
    found.day_and = found.day_and or days == "and"
    return found


@lru_cache(maxsize=4096)
def _text(expression: str) -> str:
    text, problems = read_expression(expression)
    if problems:
        raise ValueError(problems[0].text)
    return text


def matcher(expression: str, days: Literal["or", "and"]) -> CronSim:
    """Return cronsim's view of an expression, free to be moved in time; ValueError says what is wrong."""
    return copy(_compiled(_text(expression), days))


def is_hourly(expression: str) -> bool:
    """Whether an expression runs in every hour of its days, so that it says how often rather than when.

    >>> is_hourly("*/5 * * * *"), is_hourly("30 2 * * *")
    (True, False)
    """
    return len(matcher(expression, "or").hours) == _HOURS
