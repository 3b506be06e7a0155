"""Convert plain JSON values back to arguments (S5).

Knows no bytes and no envelope, and looks up no class by its stored name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from fairlane.model.payload.enums import Enums, UnknownMember, name_enum, read_enum
from fairlane.model.payload.paths import Step, Trail, path_of, shown
from fairlane.model.payload.tagged import INT64, TAGS, Node, Unreadable, as_array, as_object, read_tagged

MAX_DEPTH: Final = 128
"""The deepest nesting of any setting: reading and writing recurse once per level."""


_AS_THEY_ARE: Final = frozenset({str, bool, float, type(None)})


class Undecodable(ValueError):  # noqa: N818 (named like its error class, S27)
    """Stored bytes that cannot be decoded. The message says where and why and never shows the value."""


class PayloadReader:
    """Converts plain JSON values back. The first value that cannot be read raises `Undecodable`.

    With `is_showing`, an Enum member of an unknown class becomes text.
    """

    __slots__ = ("_enums", "_is_showing")

    def __init__(self, enums: Enums, *, is_showing: bool = False) -> None:
        self._enums = enums
        self._is_showing = is_showing

    def read(self, value: object, root: str, depth: int) -> Any:
        """Return the original value."""
        return self._read(value, None, root, depth)

    def _read(self, value: object, at: Trail | None, step: Step, depth: int) -> Any:
        if isinstance(value, int):
            if not -INT64 <= value < INT64:
                _unreadable((at, step), "is an integer beyond 64 bits")
            return value
        if (node := as_object(value)) is not None:
            return self._object(node, self._below(at, step, depth), depth)
        items = as_array(value)
        return value if items is None else self._items(items, self._below(at, step, depth), depth)

    def _below(self, at: Trail | None, step: Step, depth: int) -> Trail:
        here = (at, step)
        if depth > MAX_DEPTH:
            _unreadable(here, f"is nested more than {MAX_DEPTH} deep")
        return here

    def _object(self, node: Node, here: Trail, depth: int) -> Any:
        tags = [key for key in node if key[:1] == "$"]
        return self._tagged(tags, node, here, depth) if tags else self._fields(node, here, depth)

    def _items(self, value: list[object], here: Trail, depth: int) -> list[Any]:
        return [
            item if type(item) in _AS_THEY_ARE else self._read(item, here, index, depth + 1)
            for index, item in enumerate(value)
        ]

    def _fields(self, value: Node, here: Trail, depth: int) -> Node:
        return {
            key: item if type(item) in _AS_THEY_ARE else self._read(item, here, key, depth + 1)
            for key, item in value.items()
        }

    def _tagged(self, tags: list[str], node: Node, here: Trail, depth: int) -> Any:
        tag = tags[0]
        if len(tags) > 1:
            _unreadable(here, "has more than one tag")
        try:
            if tag in TAGS:
                return read_tagged(tag, node)
            if tag == "$enum":
                return self._member(node)
        except Unreadable as no:
            _unreadable(here, str(no))
        return self._nesting(tag, node, here, depth)

    def _member(self, node: Node) -> Any:
        try:
            return read_enum(node, self._enums)
        except UnknownMember:
            if self._is_showing:
                return name_enum(node)
            raise

    def _nesting(self, tag: str, node: Node, here: Trail, depth: int) -> Any:
        if tag not in _NESTING:
            _unreadable(here, f"has the unknown tag {shown(tag)}")
        fields, content = as_object(node[tag]), as_array(node[tag])
        if len(node) == 1 and tag == "$dict" and fields is not None:
            return self._fields(fields, here, depth)
        if len(node) != 1 or tag == "$dict" or content is None:
            _unreadable(here, f"is not of the form that {tag} has")
        return _collected(tag, self._items(content, here, depth), here)


def _collected(tag: str, items: list[Any], here: Trail) -> tuple[Any, ...] | set[Any] | frozenset[Any]:
    try:
        collected = _COLLECT[tag](items)
    except TypeError:
        _unreadable(here, "has a member that no set can hold")
    if len(collected) != len(items):
        _unreadable(here, "has a member twice")
    return collected


_COLLECT: Final[Mapping[str, Callable[[list[Any]], tuple[Any, ...] | set[Any] | frozenset[Any]]]] = {
    "$tuple": tuple,
    "$set": set,
    "$frozenset": frozenset,
}

_NESTING: Final = {"$dict", *_COLLECT}


def _unreadable(here: Trail, why: str) -> NoReturn:
    raise Undecodable(f"{path_of(here)} {why}") from None
