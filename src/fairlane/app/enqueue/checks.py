"""Check the options of an enqueue. Collects every problem and goes on, so that one error lists them all."""

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
from fairlane.model.payload.tagged import INT64, is_utf8
from fairlane.model.scheduling.priority import HIGHEST, LOWEST, is_priority

MAX_ATTEMPTS: Final = 1_000
LONGEST_WAIT: Final[Micros] = 100 * 365 * DAY
"""The longest delay or expiry. With it, all instants stay within range until 2155."""

_LAST_DAY: Final = to_datetime(LAST_INSTANT).date()
_DEEPEST: Final = 32


class ProblemList:
    """The problems of the items of a batch so far; `index` is the current item.

    A failed check returns a placeholder that is never used.

    >>> problems = ProblemList(3)
    >>> problems.add("tenant", "is missing", "name one", "tenant_required")
    >>> print(*problems.found)
    [3] tenant: is missing; name one
    """

    __slots__ = ("found", "index", "without_tenant")

    def __init__(self, index: int) -> None:
        self.index = index
        self.found: list[Problem] = []
        self.without_tenant: set[str] = set()  # tasks whose calls name no tenant

    def add(self, field: str, message: str, hint: str, code: str) -> None:
        """Add one problem of the current item."""
        self.found.append(Problem(self.index, field, message, hint, code))

    def take(self, problems: Iterable[Problem]) -> None:
        """Add problems that were found without knowing the index."""
        for problem in problems:
            self.add(problem.field, problem.message, problem.hint, problem.code)


def kind_of(value: object) -> str:
    """Return the name of a value's type, bounded; the value itself may be secret."""
    return type(value).__qualname__[:80]


def instant(problems: ProblemList, field: str, value: object) -> Instant:
    """Return a datetime with a time zone as an instant that every store can hold.

    >>> problems = ProblemList(0)
    >>> _ = instant(problems, "run_at", datetime(2026, 1, 1))
    >>> print(*problems.found)
    [0] run_at: has no time zone; give it one, e.g. datetime.now(UTC)
    """
    if not isinstance(value, datetime):
        problems.add(field, f"is of type {kind_of(value)}", "give a datetime with a time zone", "type")
        return 0
    if value.tzinfo is None or value.utcoffset() is None:
        problems.add(field, "has no time zone", "give it one, e.g. datetime.now(UTC)", "naive")
        return 0
    found = to_instant(value)
    if found > LAST_INSTANT:
        problems.add(field, f"is in the year {value.year}", f"use a moment up to {_LAST_DAY}", "range")
        return 0
    return found


def duration(problems: ProblemList, field: str, value: object, least: Micros, most: Micros) -> Micros:
    """Return seconds or a timedelta, within bounds, in microseconds.

    >>> problems = ProblemList(2)
    >>> duration(problems, "delay", 1.5, 0, LONGEST_WAIT), duration(problems, "delay", -1, 0, LONGEST_WAIT)
    (1500000, 0)
    >>> print(*problems.found)
    [2] delay: is -1.0 s; use 0 s to 3153600000 s
    """
    seconds = _seconds(value)
    if seconds is None:
        problems.add(field, f"is of type {kind_of(value)}", "give seconds or a timedelta", "type")
    elif not isfinite(seconds) or not least <= to_micros(seconds) <= most:
        lowest = "more than 0 s" if 0 < least < SECOND else f"{least // SECOND} s"
        problems.add(field, f"is {seconds} s", f"use {lowest} to {most // SECOND} s", "range")
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


def priority(problems: ProblemList, field: str, value: object) -> int:
    """Return a whole number from -100 to 100."""
    if isinstance(value, int) and is_priority(value):
        return value
    problems.add(field, f"is {_number(value)}", f"use a whole number, {LOWEST} to {HIGHEST}", "range")
    return 0


def attempts(problems: ProblemList, field: str, value: object) -> int:
    """Return a whole number from 1 to 1,000; the first run counts."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_ATTEMPTS:
        return value
    hint = f"use a whole number, 1 to {MAX_ATTEMPTS}, which counts the first run"
    problems.add(field, f"is {_number(value)}", hint, "range")
    return 1


def _number(value: object) -> str:
    """Return a number of usual size as text; of any other value only the type, since it may be secret."""
    is_small = isinstance(value, int | float) and abs(value) < INT64
    return str(value) if is_small else f"of type {kind_of(value)}"


def label(problems: ProblemList, field: str, value: object) -> str:
    """Return a key, a correlation id or a tag (S3)."""
    problems.take(check_name(problems.index, field, value, label_hint(value)))
    return str(value)


def tags(problems: ProblemList, value: object) -> tuple[str, ...]:
    """Return several labels; a single str is refused, since it would become its letters."""
    if not isinstance(value, tuple):
        problems.add("tags", f"is of type {kind_of(value)}", "give a list of texts", "type")
        return ()
    given = cast("tuple[object, ...]", value)
    return tuple(label(problems, f"tags[{at}]", tag) for at, tag in enumerate(given))


def metadata(problems: ProblemList, value: object) -> bytes:
    """Return metadata encoded as JSON; a problem names each value that is not JSON by its path.

    >>> problems = ProblemList(0)
    >>> metadata(problems, {"plan": "pro"}), metadata(problems, {"when": {"day": datetime}})
    (b'{"plan":"pro"}', b'{}')
    >>> print(*problems.found)
    [0] metadata.when.day: is of type type; use None, bool, int, float, str, list or dict
    """
    if not isinstance(value, Mapping):
        problems.add("metadata", f"is of type {kind_of(value)}", "give a dict with str keys", "metadata")
        return b"{}"
    before = len(problems.found)
    plain = dict(cast("Mapping[object, object]", value))
    _json(problems, "metadata", plain, 0)
    return b"{}" if len(problems.found) > before else msgspec.json.encode(plain)


def _json(problems: ProblemList, path: str, value: Any, depth: int) -> None:
    if depth > _DEEPEST:
        problems.add(path, f"is nested more than {_DEEPEST} deep", "send it flat", "metadata")
    elif type(value) is dict:
        for key, item in cast("dict[object, object]", value).items():
            if isinstance(key, str) and is_utf8(key):
                _json(problems, f"{path}.{key[:64]}", item, depth + 1)
            else:
                hint = "use str keys of valid Unicode"
                problems.add(path, f"has a key of type {kind_of(key)}", hint, "metadata")
    elif type(value) is list:
        for at, item in enumerate(cast("list[object]", value)):
            _json(problems, f"{path}[{at}]", item, depth + 1)
    else:
        wrong = _scalar(value)
        if wrong is not None:
            problems.add(path, *wrong, "metadata")


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
