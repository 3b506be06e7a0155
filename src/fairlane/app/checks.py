"""What each option of an enqueue may be. Notes every problem on a sheet and goes on; raises nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from math import inf, isfinite
from typing import Any, Final, cast

import msgspec

from fairlane.model.errors import Problem
from fairlane.model.instants import (
    DAY,
    LAST_INSTANT,
    SECOND,
    Instant,
    Micros,
    to_datetime,
    to_instant,
    to_micros,
)
from fairlane.model.names import check_name, label_hint
from fairlane.model.priority import HIGHEST, LOWEST, is_priority
from fairlane.model.tagged import INT64, is_utf8

MOST_ATTEMPTS: Final = 1_000
LONGEST_WAIT: Final[Micros] = 100 * 365 * DAY
"""No delay or expiry is longer, so that instants stay before the last one until 2155."""

_LAST_DAY: Final = to_datetime(LAST_INSTANT).date()
_DEEPEST: Final = 32


class Sheet:
    """What is wrong with one item of a batch, so far. A check that fails gives a value that is never used.

    >>> sheet = Sheet(3)
    >>> sheet.add("tenant", "is missing", "name one", "tenant_required")
    >>> print(*sheet.problems)
    [3] tenant: is missing; name one
    """

    __slots__ = ("index", "problems", "tenantless")

    def __init__(self, index: int) -> None:
        self.index = index
        self.problems: list[Problem] = []
        self.tenantless: set[str] = set()  # tasks whose calls belong to nobody in particular

    def add(self, field: str, message: str, hint: str, code: str) -> None:
        """Note one problem."""
        self.problems.append(Problem(self.index, field, message, hint, code))

    def take(self, problems: Iterable[Problem]) -> None:
        """Note problems that were found without knowing which item this is."""
        for problem in problems:
            self.add(problem.field, problem.message, problem.hint, problem.code)


def kind_of(value: object) -> str:
    """Name a value's type in a bounded way; the value itself may be a secret."""
    return type(value).__qualname__[:80]


def instant(sheet: Sheet, field: str, value: object) -> Instant:
    """A moment with a time zone that every store can keep.

    >>> sheet = Sheet(0)
    >>> _ = instant(sheet, "run_at", datetime(2026, 1, 1))
    >>> print(*sheet.problems)
    [0] run_at: has no time zone; give it one, e.g. datetime.now(UTC)
    """
    if not isinstance(value, datetime):
        sheet.add(field, f"is of type {kind_of(value)}", "give a datetime with a time zone", "type")
        return 0
    if value.tzinfo is None or value.utcoffset() is None:
        sheet.add(field, "has no time zone", "give it one, e.g. datetime.now(UTC)", "naive")
        return 0
    found = to_instant(value)
    if found > LAST_INSTANT:
        sheet.add(field, f"is in the year {value.year}", f"use a moment up to {_LAST_DAY}", "range")
        return 0
    return found


def duration(sheet: Sheet, field: str, value: object, least: Micros, most: Micros) -> Micros:
    """A number of seconds or a timedelta, within bounds.

    >>> sheet = Sheet(2)
    >>> duration(sheet, "delay", 1.5, 0, LONGEST_WAIT), duration(sheet, "delay", -1, 0, LONGEST_WAIT)
    (1500000, 0)
    >>> print(*sheet.problems)
    [2] delay: is -1.0 s; use 0 s to 3153600000 s
    """
    seconds = _seconds(value)
    if seconds is None:
        sheet.add(field, f"is of type {kind_of(value)}", "give seconds or a timedelta", "type")
    elif not isfinite(seconds) or not least <= to_micros(seconds) <= most:
        lowest = "more than 0 s" if 0 < least < SECOND else f"{least // SECOND} s"
        sheet.add(field, f"is {seconds} s", f"use {lowest} to {most // SECOND} s", "range")
    else:
        return to_micros(value if isinstance(value, timedelta) else seconds)
    return 0


def _seconds(value: object) -> float | None:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:  # an int of hundreds of digits
        return inf


def priority(sheet: Sheet, field: str, value: object) -> int:
    """A whole number from -100 to 100."""
    if isinstance(value, int) and is_priority(value):
        return value
    sheet.add(field, f"is {_number(value)}", f"use a whole number, {LOWEST} to {HIGHEST}", "range")
    return 0


def attempts(sheet: Sheet, field: str, value: object) -> int:
    """A whole number from 1 to 1,000; the first run counts."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_ATTEMPTS:
        return value
    hint = f"use a whole number, 1 to {MOST_ATTEMPTS}, which counts the first run"
    sheet.add(field, f"is {_number(value)}", hint, "range")
    return 1


def _number(value: object) -> str:
    """Show a number of usual size; of anything else only the type, since it may be anything."""
    is_small = isinstance(value, int | float) and abs(value) < INT64
    return str(value) if is_small else f"of type {kind_of(value)}"


def label(sheet: Sheet, field: str, value: object) -> str:
    """A key, a correlation id or a tag (S3)."""
    sheet.take(check_name(sheet.index, field, value, label_hint(value)))
    return str(value)


def tags(sheet: Sheet, value: object) -> tuple[str, ...]:
    """Labels, several of them: one text is not a list of its letters."""
    if not isinstance(value, tuple):
        sheet.add("tags", f"is of type {kind_of(value)}", "give a list of texts", "type")
        return ()
    given = cast("tuple[object, ...]", value)
    return tuple(label(sheet, f"tags[{at}]", tag) for at, tag in enumerate(given))


def metadata(sheet: Sheet, value: object) -> bytes:
    """Plain JSON under text keys, encoded; each value that is not JSON is named by its path.

    >>> sheet = Sheet(0)
    >>> metadata(sheet, {"plan": "pro"}), metadata(sheet, {"when": {"day": datetime}})
    (b'{"plan":"pro"}', b'{}')
    >>> print(*sheet.problems)
    [0] metadata.when.day: is of type type; use None, bool, int, float, str, list or dict
    """
    if not isinstance(value, Mapping):
        sheet.add("metadata", f"is of type {kind_of(value)}", "give a dict with str keys", "metadata")
        return b"{}"
    before = len(sheet.problems)
    plain = dict(cast("Mapping[object, object]", value))
    _json(sheet, "metadata", plain, 0)
    return b"{}" if len(sheet.problems) > before else msgspec.json.encode(plain)


def _json(sheet: Sheet, path: str, value: Any, depth: int) -> None:
    if depth > _DEEPEST:
        sheet.add(path, f"is nested more than {_DEEPEST} deep", "send it flat", "metadata")
    elif type(value) is dict:
        for key, item in cast("dict[object, object]", value).items():
            if isinstance(key, str) and is_utf8(key):
                _json(sheet, f"{path}.{key[:64]}", item, depth + 1)
            else:
                hint = "use str keys of valid Unicode"
                sheet.add(path, f"has a key of type {kind_of(key)}", hint, "metadata")
    elif type(value) is list:
        for at, item in enumerate(cast("list[object]", value)):
            _json(sheet, f"{path}[{at}]", item, depth + 1)
    else:
        wrong = _scalar(value)
        if wrong is not None:
            sheet.add(path, *wrong, "metadata")


def _scalar(value: Any) -> tuple[str, str] | None:
    kind = cast("type[object]", type(value))
    if kind is str:
        return None if is_utf8(value) else ("is text with a lone surrogate", "send valid Unicode text")
    if kind is int:
        return None if -INT64 <= value < INT64 else ("is an integer beyond 64 bits", "send it as text")
    if kind is float:
        return None if isfinite(value) else ("is not a finite number", "send None or text")
    if value is None or kind is bool:
        return None
    return f"is of type {kind_of(value)}", "use None, bool, int, float, str, list or dict"
