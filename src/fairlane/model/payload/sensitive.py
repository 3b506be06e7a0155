"""Find sensitive values in a payload, and make redacted copies (S6).

Never changes what is stored, and no message, path or finding contains a value. Walks the payload; the names
are in `secret_names`, the patterns in `secret_patterns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from math import isfinite
from typing import Any, Final, Literal, cast
from uuid import UUID

import msgspec

from fairlane.model.errors import Problem
from fairlane.model.payload.paths import Trail, path_of
from fairlane.model.payload.reading import MAX_DEPTH
from fairlane.model.payload.secret_names import LONGEST_CACHED_NAME, FieldNames, name_hit
from fairlane.model.payload.secret_patterns import MARKER, redact_text, secret_kind
from fairlane.model.payload.tagged import INT64

__all__ = [
    "MARKER",
    "SensitivePolicy",
    "SensitiveValue",
    "are_plain_numbers",
    "check_sensitive",
    "find_sensitive",
    "redact",
    "redact_text",
]

SensitivePolicy = Literal["allow", "warn", "reject"]

LARGE_TEXT: Final = 2_000
"""Longer text (characters) or bytes are probably content: a mail body, a document."""

MAX_FINDINGS: Final = 100

_LEAST: Final = -INT64

_MAX_VALUES: Final = 1_000_000
"""More values than a payload has; a value that contains itself twice has no end."""

_HINT = "send a reference instead of the value, or set the policy to `warn` or `allow`"


class SensitiveValue(msgspec.Struct, frozen=True):
    """Where a value looks sensitive, and why; never the value."""

    path: str
    why: str


def find_sensitive(arguments: Mapping[str, Any], *, names: Iterable[str] = ()) -> list[SensitiveValue]:
    """Return what looks sensitive by field name or value, at most 100. `names` are a task's own.

    >>> find_sensitive({"user": {"password": "hunter2"}, "sort_key": "name"})
    [SensitiveValue(path='arguments.user.password', why="field name 'password'")]
    """
    return _Finder(_field_names(tuple(names))).find(dict(arguments))


def redact(value: Any, *, names: Iterable[str] = ()) -> Any:
    """Return a copy with a marker for everything that `find_sensitive` would find.

    Also for results and other values: a value of a type that no payload has is replaced, too.

    >>> redact({"token": "abc", "max_tokens": 5, "note": ["password=x", "hello"]})
    {'token': '[redacted]', 'max_tokens': 5, 'note': ['[redacted]', 'hello']}
    """
    return _Redactor(FieldNames(names)).copy(value, 0)


def check_sensitive(
    arguments: Mapping[str, Any], policy: SensitivePolicy, names: Iterable[str] = ()
) -> tuple[list[Problem], list[SensitiveValue]]:
    """Apply the policy at enqueue: `reject` returns problems, `warn` findings to log, `allow` neither.

    >>> problems, findings = check_sensitive({"password": "hunter2"}, "reject")
    >>> print(*problems, findings)
    [0] arguments.password: looks sensitive (field name 'password'); send a reference instead of the value, \
or set the policy to `warn` or `allow` []
    """
    if policy == "allow":
        return [], []
    findings = find_sensitive(arguments, names=names)
    if policy == "warn":
        return [], findings
    return [
        Problem(0, found.path, f"looks sensitive ({found.why})", _HINT, "sensitive") for found in findings
    ], []


def _why(value: object) -> str | None:
    """Return why a value is sensitive, regardless of its field name."""
    if not isinstance(value, str | bytes) or isinstance(value, Enum):
        return None
    if len(value) > LARGE_TEXT:
        return "large text, likely content"
    return secret_kind(value if isinstance(value, str) else value.decode("latin-1"))


@lru_cache(maxsize=4096)
def _why_name(name: str) -> str | None:
    return secret_kind(name)


def _why_key(key: object) -> str | None:
    """Return why a key is itself sensitive. Field names repeat with every job, so short ones are cached."""
    return _why_name(key) if type(key) is str and len(key) <= LONGEST_CACHED_NAME else _why(key)


_field_names = lru_cache(maxsize=256)(FieldNames)
"""A task's own names, split once."""


_NUMBERS: Final = frozenset({int, float, bool, type(None)})
"""Values of these types are sensitive only by their field name."""


@lru_cache(maxsize=4096)
def _is_innocent(name: str) -> bool:
    """Whether a field name is harmless for any value, and is no tag of the payload format."""
    return name_hit(name) is None and secret_kind(name) is None and name[:1] != "$"


def are_plain_numbers(arguments: Mapping[Any, object]) -> bool:
    """Whether all arguments are JSON numbers under harmless names.

    Such arguments need neither a search for secrets nor a conversion; this check takes a third of the time of
    both.

    >>> are_plain_numbers({"x": 1, "y": None}), are_plain_numbers({"pwd": 1}), are_plain_numbers({"x": 2**64})
    (True, False, False)
    """
    for name, value in arguments.items():
        kind = type(value)
        if kind is int:
            if not _LEAST <= value < INT64:  # type: ignore[operator]
                return False
        elif kind not in _NUMBERS or (kind is float and not isfinite(value)):  # type: ignore[arg-type]
            return False
        if type(name) is not str or len(name) > LONGEST_CACHED_NAME or not _is_innocent(name):
            return False
    return True


class _EnoughError(Exception):
    """Stop searching."""


class _Finder:
    __slots__ = ("_left", "_names", "findings")

    def __init__(self, names: FieldNames) -> None:
        self._names = names
        self._left = _MAX_VALUES
        self.findings: list[SensitiveValue] = []

    def find(self, arguments: dict[str, Any]) -> list[SensitiveValue]:
        try:  # noqa: SIM105 (suppress costs as much as looking at two arguments)
            self._look(arguments, (None, "arguments"), 0)
        except _EnoughError:
            pass
        return self.findings

    def _note(self, here: Trail, why: str) -> None:
        self.findings.append(SensitiveValue(path_of(here), why))
        if len(self.findings) >= MAX_FINDINGS:
            raise _EnoughError

    def _look(self, value: object, here: Trail, depth: int) -> None:
        self._left -= 1
        if depth > MAX_DEPTH or self._left < 0:
            self._note(here, "too deep or too much to look through")
            raise _EnoughError
        if isinstance(value, dict):
            self._fields(cast("dict[object, object]", value), here, depth)
        elif isinstance(value, list | tuple):
            for index, item in enumerate(cast("list[object]", value)):
                self._look(item, (here, index), depth + 1)
        elif isinstance(value, set | frozenset):
            for member in cast("set[object]", value):
                self._look(member, (here, ...), depth + 1)
        elif why := _why(value):
            self._note(here, why)

    def _fields(self, fields: dict[object, object], here: Trail, depth: int) -> None:
        for key, child in fields.items():
            if why := _why_key(key):
                self._note((here, MARKER), f"its key: {why}")
                self._look(child, (here, MARKER), depth + 1)
                continue
            below = (here, str(key))
            if why := self._names.why(str(key), child):
                if child != MARKER:
                    self._note(below, why)
            elif type(child) not in _NUMBERS:
                self._look(child, below, depth + 1)


_SHOWN: Final = (str, bytes, int, float, date, time, timedelta, Decimal, UUID, Enum, type(None))


class _Redactor:
    __slots__ = ("_left", "_names")

    def __init__(self, names: FieldNames) -> None:
        self._names = names
        self._left = _MAX_VALUES

    def copy(self, value: object, depth: int) -> Any:
        self._left -= 1
        if depth > MAX_DEPTH or self._left < 0 or _why(value):
            return MARKER
        if isinstance(value, dict):
            return self._fields(cast("dict[object, object]", value), depth)
        if isinstance(value, list | tuple | set | frozenset):
            items = [self.copy(item, depth + 1) for item in cast("Iterable[object]", value)]
            return _like(cast("object", value), items)
        return value if isinstance(value, _SHOWN) else MARKER

    def _fields(self, fields: dict[object, object], depth: int) -> dict[object, Any]:
        shown: dict[object, Any] = {}
        for key, child in fields.items():
            name = _free(shown) if _why_key(key) else key
            secret = self._names.why(str(key), child)
            shown[name] = MARKER if secret else self.copy(child, depth + 1)
        return shown


def _like(value: object, items: list[Any]) -> Any:
    if isinstance(value, tuple):
        return tuple(items)
    if isinstance(value, set):
        return set(items)
    return frozenset(items) if isinstance(value, frozenset) else items


def _free(taken: Mapping[object, Any]) -> str:
    """Return a marker for a key that is itself sensitive, different from those taken."""
    return MARKER if MARKER not in taken else f"{MARKER} {len(taken)}"
