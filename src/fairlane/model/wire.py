"""Turn arguments into plain JSON values and back, exactly, or say where and why not (S5).

Knows no bytes, no envelope and no size in bytes; it only stops early at what cannot possibly fit.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from pathlib import PurePath
from typing import Any, Final, NoReturn, TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.enums import Enums, read_enum, write_enum
from fairlane.model.errors import Problem
from fairlane.model.tagged import INT64, TAGS, WRITERS, Node, Unreadable, Unwritable, is_utf8, read_tagged
from fairlane.model.trail import Step, Trail, path_of, shown

MOST_DEPTH: Final = 128
"""No setting may allow deeper nesting: reading and writing call themselves once a level."""

MOST_PROBLEMS: Final = 100

_ENCODE = msgspec.json.Encoder().encode


class Unencodable(ValueError):  # noqa: N818 (the enqueue turns it into InvalidJob)
    """A payload that would not come back as itself; `problems` names every value, never shows one."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class Undecodable(ValueError):  # noqa: N818 (named like its error class, S27)
    """Stored bytes that cannot be read. The message says where and why, and never shows the value."""


# --- writing -----------------------------------------------------------------------------------------

_TEXT_HINT = "send valid Unicode text, or bytes"
_FOREIGN_HINT = "pass an id or plain values, and let the handler open it itself"
_CONVERT: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
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
    kind = type(value)
    hint = next((f"convert it: {how}" for base, how in _CONVERT if issubclass(kind, base)), _FOREIGN_HINT)
    if is_dataclass(kind):
        hint = "convert it: dataclasses.asdict(value)"
    return Unwritable(f"is a {_type_name(kind)}, which would not come back as one", hint)


class _StopError(Exception):
    """Enough is known: the payload is refused."""


class Writer:
    """Turn values into plain JSON values, noting every refusal with its path in `problems`."""

    __slots__ = ("_enums", "_max_depth", "_room", "problems")

    def __init__(self, max_depth: int, room: int, enums: Enums | None = None) -> None:
        """`room` is how many values may be met in all: each takes at least a byte.

        Without it a value that contains itself twice would take for ever, however low the depth.
        """
        self._max_depth = max_depth
        self._room = room
        self._enums = enums
        self.problems: list[Problem] = []

    def write(self, value: Any, root: str, depth: int) -> Any:
        """Give the plain form of a value; it counts only if `problems` stayed empty."""
        try:
            return self._write(value, None, root, depth)
        except _StopError:
            return None

    def _write(self, value: Any, at: Trail | None, step: Step, depth: int) -> Any:
        write = _BY_TYPE.get(type(value))
        try:
            if write is not None:
                return write(self, value, at, step, depth)
            if isinstance(value, Enum):
                return write_enum(value, self._enums)
            return WRITERS.get(type(value), _refuse)(value)
        except Unwritable as no:
            self._note(Problem(0, path_of((at, step)), no.message, no.hint, "payload"))
            return None

    def _note(self, problem: Problem) -> None:
        self.problems.append(problem)
        if len(self.problems) >= MOST_PROBLEMS:
            raise _StopError

    def _enter(self, size: int, depth: int) -> None:
        if depth > self._max_depth:
            raise Unwritable(
                f"is nested more than {self._max_depth} deep", "send it flat, or a reference to it"
            )
        self._room -= size
        if self._room < 0:
            message = "has more values than its limit has bytes"
            self.problems.append(Problem(0, "payload", message, TOO_LARGE_HINT, "too_large"))
            raise _StopError

    def _scalar(self, value: Any, _at: Trail | None, _step: Step, _depth: int) -> Any:
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
        # Sorted as written: a set has no order of its own, and equal payloads should be equal bytes.
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


TOO_LARGE_HINT = "store the content elsewhere and send a reference to it"


def _refuse(value: object) -> NoReturn:
    raise _foreign(value)


_Write: TypeAlias = Callable[[Writer, Any, Trail | None, Step, int], Any]

_BY_TYPE: Final[Mapping[type, _Write]] = {
    type(None): Writer._scalar,
    bool: Writer._scalar,
    str: Writer._str,
    int: Writer._int,
    float: Writer._float,
    list: Writer._items,
    tuple: Writer._tuple,
    set: Writer._set,
    frozenset: Writer._frozenset,
    dict: Writer._dict,
}

_AS_THEY_ARE: Final = frozenset({str, bool, type(None)})


def is_plain(arguments: dict[Any, Any]) -> bool:
    """Whether arguments are scalars that JSON has, all of them, so that nothing need be turned.

    Text is not looked at: the encoder refuses what has no UTF-8.

    >>> is_plain({"x": 1, "to": "ada"}), is_plain({"x": [1]}), is_plain({"$x": 1})
    (True, False, False)
    """
    for key, value in arguments.items():
        kind = type(value)
        if kind not in _AS_THEY_ARE:
            if kind is int:
                if not -INT64 <= value < INT64:
                    return False
            elif kind is not float or not isfinite(value):
                return False
        if type(key) is not str or key[:1] == "$":
            return False
    return True


# --- reading -----------------------------------------------------------------------------------------


class Reader:
    """Turn plain JSON values back; the first thing that cannot be read ends it with `Undecodable`."""

    __slots__ = ("_enums",)

    def __init__(self, enums: Enums) -> None:
        self._enums = enums

    def read(self, value: Any, root: str, depth: int) -> Any:
        """Give the value that was written."""
        return self._read(value, None, root, depth)

    def _read(self, value: Any, at: Trail | None, step: Step, depth: int) -> Any:
        kind = type(value)
        if kind is int:
            if not -INT64 <= value < INT64:
                _unreadable((at, step), "is an integer beyond 64 bits")
            return value
        if kind is not dict and kind is not list:
            return value
        here = (at, step)
        if depth > MOST_DEPTH:
            _unreadable(here, f"is nested more than {MOST_DEPTH} deep")
        if kind is list:
            return self._items(value, here, depth)
        tags = [key for key in value if key[:1] == "$"]
        return self._tagged(tags, value, here, depth) if tags else self._fields(value, here, depth)

    def _items(self, value: list[Any], here: Trail, depth: int) -> list[Any]:
        return [self._read(item, here, index, depth + 1) for index, item in enumerate(value)]

    def _fields(self, value: Node, here: Trail, depth: int) -> Node:
        return {key: self._read(item, here, key, depth + 1) for key, item in value.items()}

    def _tagged(self, tags: list[str], node: Node, here: Trail, depth: int) -> Any:
        tag = tags[0]
        if len(tags) > 1:
            _unreadable(here, "has more than one tag")
        try:
            if tag in TAGS:
                return read_tagged(tag, node)
            if tag == "$enum":
                return read_enum(node, self._enums)
        except Unreadable as no:
            _unreadable(here, str(no))
        return self._nesting(tag, node, here, depth)

    def _nesting(self, tag: str, node: Node, here: Trail, depth: int) -> Any:
        content = node[tag]
        collect = _COLLECT.get(tag)
        if collect is None and tag != "$dict":
            _unreadable(here, f"has the unknown tag {shown(tag)}")
        if len(node) != 1 or type(content) is not (list if collect else dict):
            _unreadable(here, f"is not of the form that {tag} has")
        if collect is None:
            return self._fields(content, here, depth)
        try:
            collected = collect(self._items(content, here, depth))
        except TypeError:
            _unreadable(here, "has a member that no set can hold")
        if len(collected) != len(content):
            _unreadable(here, "has a member twice")
        return collected


_COLLECT: Final[Mapping[str, Callable[[list[Any]], tuple[Any, ...] | set[Any] | frozenset[Any]]]] = {
    "$tuple": tuple,
    "$set": set,
    "$frozenset": frozenset,
}


def _unreadable(here: Trail, why: str) -> NoReturn:
    raise Undecodable(f"{path_of(here)} {why}") from None
