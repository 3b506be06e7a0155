"""Validate values that are declared in code: `ConfigError` names the field, the value and what is allowed.

Names and jobs are validated elsewhere, where all problems are collected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NoReturn, TypeGuard, cast

from fairlane.model.errors import ConfigError
from fairlane.model.failure import text_of
from fairlane.model.instants import LAST_INSTANT, Duration, to_micros
from fairlane.model.names import name_hint

_WIDTH: Final = 80
_MANY: Final = 4


def refuse(field: str, value: object, wanted: str) -> NoReturn:
    """Raise the error; its key is the first word of the field.

    >>> refuse("limit of a Rate", 0, "a whole number, 1 or more")
    Traceback (most recent call last):
    fairlane.model.errors.ConfigError: limit of a Rate must be a whole number, 1 or more, not 0
    """
    error = ConfigError(f"{field} must be {wanted}, not {shown(value)}")
    error.key, error.allowed = field.partition(" ")[0], wanted
    raise error


def shown(value: object) -> str:
    """Return the repr of a value, shortened, even if its own `__repr__` fails.

    >>> shown("x" * 200)[-6:]
    'xxx...'
    """
    text = text_of(value, _WIDTH, repr)
    return text if len(text) < _WIDTH else f"{text[: _WIDTH - 3]}..."


def legal(what: str, name: object) -> None:
    """Refuse an illegal name of a queue, gate, lane and so on (S3)."""
    hint = name_hint(name)
    if hint is not None:
        error = ConfigError(f"{shown(name)} is not a legal {what} name; {hint}")
        error.key, error.allowed = "name", hint
        raise error


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a comparable number; a bool is not.

    >>> is_number(1), is_number(True), is_number(float("nan")), is_number("1")
    (True, False, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # noqa: PLR0124 (NaN)


def is_text(value: object) -> TypeGuard[str]:
    """Whether a value is text.

    >>> is_text("a"), is_text(b"a")
    (True, False)
    """
    return isinstance(value, str)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number; a bool is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def positive(field: str, duration: object, *, is_optional: bool = False) -> None:
    """Refuse a value that is no duration above zero."""
    if duration is None and is_optional:
        return
    is_duration = isinstance(duration, timedelta) or (is_number(duration) and abs(duration) < math.inf)
    if not is_duration or to_micros(cast("Duration", duration)) <= 0:
        refuse(field, duration, f"a finite duration above 0{', or None' * is_optional}")


def counted(field: str, value: object, least: int, *, is_optional: bool = False) -> None:
    """Refuse a value that is no whole number, is below the least one, or is too large for a store."""
    if value is None and is_optional:
        return
    if not is_whole(value) or value < least:
        refuse(field, value, f"a whole number, {least} or more{', or None' * is_optional}")
    if value > LAST_INSTANT:
        refuse(field, value, f"{LAST_INSTANT} at the most: no store keeps larger numbers")


def one_of(field: str, value: object, *allowed: str) -> None:
    """Refuse a value that is not among the allowed ones."""
    if not isinstance(value, str) or value not in allowed:
        refuse(field, value, " or ".join(allowed) if len(allowed) < _MANY else f"one of {', '.join(allowed)}")


def flag(field: str, value: object) -> None:
    """Refuse a value that is neither True nor False.

    >>> flag("burst", True)
    >>> flag("burst", "yes")
    Traceback (most recent call last):
    fairlane.model.errors.ConfigError: burst must be True or False, not 'yes'
    """
    if not isinstance(value, bool):
        refuse(field, value, "True or False")


def is_listed(value: object) -> TypeGuard[Sequence[object]]:
    """Whether a value is a list, a tuple or the like; text and tables are not.

    >>> is_listed(("a",)), is_listed("a"), is_listed({"a": 1})
    (True, False, False)
    """
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def instance(
    field: str, value: object, kind: type | tuple[type, ...], wanted: str, *, is_optional: bool = False
) -> None:
    """Refuse a value of another class."""
    if not isinstance(value, kind) and not (value is None and is_optional):
        refuse(field, value, f"{wanted}{', or None' * is_optional}")
