"""Convert arguments to plain JSON values, or report every value that would not round-trip (S5).

Knows no bytes, envelope or size in bytes; it only stops early at what cannot fit.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from pathlib import PurePath
from typing import Any, ClassVar, Final, NoReturn, cast
from uuid import UUID

import msgspec

from fairlane.model.errors import Problem
from fairlane.model.payload.enums import Enums, write_enum
from fairlane.model.payload.paths import Step, Trail, path_of
from fairlane.model.payload.tagged import INT64, WRITERS, Node, Unwritable, is_utf8

MAX_PROBLEMS: Final = 100
TOO_LARGE_HINT: Final = "store the content elsewhere and send a reference to it"

_ENCODE = msgspec.json.Encoder().encode

_TEXT_HINT = "send valid Unicode text, or bytes"
_FOREIGN_HINT = "pass an id or plain values, and let the handler open it itself"
_CONVERT: Final[tuple[tuple[Any, str], ...]] = (
    (str, "str(value)"),
    (int, "int(value)"),
    (float, "float(value)"),
    ((dict, types.MappingProxyType), "dict(value)"),
    ((list, deque, range, types.GeneratorType), "list(value)"),
    (set, "set(value)"),
    (frozenset, "frozenset(value)"),
    (tuple, "tuple(value)"),
    ((bytes, bytearray, memoryview), "bytes(value)"),
    (datetime, "a plain datetime"),
    (date, "a plain date"),
    (time, "a plain time"),
    (timedelta, "a plain timedelta"),
    (Decimal, "Decimal(value)"),
    (UUID, "UUID(str(value))"),
    (PurePath, "str(value)"),
)


def _type_name(kind: type) -> str:
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return name[:100].encode("ascii", "backslashreplace").decode("ascii")


def _foreign(value: object) -> Unwritable:
    # By `type` alone: an unbound proxy raises when asked for `__class__`.
    kind: type[object] = type(value)
    hint = next((f"convert it: {how}" for base, how in _CONVERT if issubclass(kind, base)), _FOREIGN_HINT)
    if hasattr(kind, "__dataclass_fields__"):
        hint = "convert it: dataclasses.asdict(value)"
    return Unwritable(f"is a {_type_name(kind)}, which would not come back as one", hint)


def _refuse(value: object) -> NoReturn:
    raise _foreign(value)


class Unencodable(ValueError):  # noqa: N818 (the enqueue turns it into InvalidJob)
    """A payload that would not round-trip; `problems` names the values and never shows one."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class _StopError(Exception):
    """Stop: the payload is refused."""


class PayloadWriter:
    """Converts values to plain JSON values and records every refusal with its path."""

    __slots__ = ("_enums", "_max_depth", "_problems", "_root", "_values_left")

    def __init__(self, root: str, max_depth: int, max_values: int, enums: Enums | None = None) -> None:
        self._root = root
        self._max_depth = max_depth
        # The largest number of values: each takes at least a byte. Without it, a value that contains itself
        # twice would take forever, however small the depth.
        self._values_left = max_values
        self._enums = enums
        self._problems: list[Problem] = []

    def write(self, value: object, depth: int) -> Any:
        """Return the plain form of a value that is nested in `depth` - 1 others.

        Raises `Unencodable` with all problems, at most 100.
        """
        plain = None
        with suppress(_StopError):
            plain = self._write(value, None, self._root, depth)
        if self._problems:
            raise Unencodable(tuple(self._problems))
        return plain

    def _write(self, value: object, at: Trail | None, step: Step, depth: int) -> Any:
        write = self._BY_TYPE.get(type(value))
        try:
            if write is not None:
                return write(self, value, at, step, depth)
            if issubclass(type(value), Enum):
                return write_enum(cast("Enum", value), self._enums)
            return WRITERS.get(type(value), _refuse)(value)
        except Unwritable as no:
            self._note(Problem(0, path_of((at, step)), no.message, no.hint, "payload"))
            return None

    def _note(self, problem: Problem) -> None:
        self._problems.append(problem)
        if len(self._problems) >= MAX_PROBLEMS:
            raise _StopError

    def _enter(self, size: int, depth: int) -> None:
        if depth > self._max_depth:
            raise Unwritable(
                f"is nested more than {self._max_depth} deep", "send it flat, or a reference to it"
            )
        self._values_left -= size
        if self._values_left < 0:
            message = "has more values than its limit has bytes"
            self._problems.append(Problem(0, self._root, message, TOO_LARGE_HINT, "too_large"))
            raise _StopError

    def _scalar(self, value: object, _at: Trail | None, _step: Step, _depth: int) -> object:
        return value

    def _str(self, value: str, _at: Trail | None, _step: Step, _depth: int) -> str:
        if not is_utf8(value):
            raise Unwritable("is text with a lone surrogate, which has no UTF-8", _TEXT_HINT)
        return value

    def _int(self, value: int, _at: Trail | None, _step: Step, _depth: int) -> int:
        if not -INT64 <= value < INT64:
            raise Unwritable("is an integer beyond 64 bits", "send it as text or Decimal")
        return value

    def _float(self, value: float, _at: Trail | None, _step: Step, _depth: int) -> float:
        if not isfinite(value):
            raise Unwritable("is a float that is not a number or not finite", "send None or text instead")
        return value

    def _items(self, value: Any, at: Trail | None, step: Step, depth: int) -> list[Any]:
        self._enter(len(value), depth)
        here = (at, step)
        return [self._write(item, here, index, depth + 1) for index, item in enumerate(value)]

    def _tuple(self, value: tuple[Any, ...], at: Trail | None, step: Step, depth: int) -> Node:
        return {"$tuple": self._items(value, at, step, depth)}

    def _members(self, value: Any, at: Trail | None, step: Step, depth: int) -> list[Any]:
        self._enter(len(value), depth)
        here = (at, step)
        # Sorted, since a set has no order and equal payloads should have equal bytes.
        return sorted((self._write(member, here, ..., depth + 1) for member in value), key=_ENCODE)

    def _set(self, value: set[Any], at: Trail | None, step: Step, depth: int) -> Node:
        return {"$set": self._members(value, at, step, depth)}

    def _frozenset(self, value: frozenset[Any], at: Trail | None, step: Step, depth: int) -> Node:
        return {"$frozenset": self._members(value, at, step, depth)}

    def _dict(self, value: dict[Any, Any], at: Trail | None, step: Step, depth: int) -> Node:
        self._enter(len(value), depth)
        here = (at, step)
        node: Node = {}
        escaped = False
        for key, item in value.items():
            self._key(key, here)
            if type(key) is str:
                escaped = escaped or key[:1] == "$"
                node[key] = self._write(item, here, key, depth + 1)
        return {"$dict": node} if escaped else node

    def _key(self, key: object, here: Trail) -> None:
        if type(key) is not str:
            message = f"has a key of type {_type_name(type(key))}"
            self._note(Problem(0, path_of(here), message, "use str keys, or a list of pairs", "payload"))
        elif not is_utf8(key):
            message = "is a key with a lone surrogate, which has no UTF-8"
            self._note(Problem(0, path_of((here, key)), message, "send valid Unicode text", "payload"))

    _BY_TYPE: ClassVar[Mapping[type, Callable[..., Any]]] = {
        type(None): _scalar,
        bool: _scalar,
        str: _str,
        int: _int,
        float: _float,
        list: _items,
        tuple: _tuple,
        set: _set,
        frozenset: _frozenset,
        dict: _dict,
    }


_AS_THEY_ARE: Final = frozenset({str, bool, type(None)})
_LEAST: Final = -INT64


def is_plain(arguments: Mapping[Any, object]) -> bool:
    """Whether all arguments are JSON scalars, so that nothing needs conversion.

    Does not check text: the encoder refuses what has no UTF-8.

    >>> is_plain({"x": 1, "to": "ada"}), is_plain({"x": [1]}), is_plain({"$x": 1})
    (True, False, False)
    """
    for key, value in arguments.items():
        kind = type(value)
        if kind is int:
            if not _LEAST <= value < INT64:  # type: ignore[operator]
                return False
        elif kind is float:
            if not isfinite(value):  # type: ignore[arg-type]
                return False
        elif kind not in _AS_THEY_ARE:
            return False
        if type(key) is not str or key[:1] == "$":
            return False
    return True
