"""Compile a type hint into a fast check of values and a JSON Schema.

Compiled once per task, used at every enqueue. A hint that is not understood allows everything. Runs no code
of the checked values. Knows no job, no store and no settings.
"""

from __future__ import annotations

import types
import typing
from collections import abc
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, Unpack
from uuid import UUID

from fairlane.app.enqueue.checks import kind_of
from fairlane.model.payload.paths import Step

Inside: TypeAlias = Iterable[tuple[Step, Any, "Shape"]]
"""The parts of a value: step, part, and the shape it should have."""

NO_CHOICE: Final = "is none of the allowed values"

_NOTHING: Final[frozenset[type]] = frozenset()
_NONE: Final = type(None)
_MAX_ALIASES: Final = 32


def exact(value: object) -> type[object]:
    """Return a value's type, without narrowing what type checkers know of the value."""
    return type(value)


def _of_type(value: Any) -> str:
    return f"is of type {kind_of(value)}"


def _of_length(value: Any) -> str:
    return f"has {len(value)} item(s)" if exact(value) is tuple else _of_type(value)


def _empty(value: Any) -> Inside:  # noqa: ARG001 (see Shape.inside)
    return ()


@dataclass(frozen=True, slots=True)
class Shape:
    """The values that one hint allows.

    A value whose exact type is in `fast_types` fits; for any other, `fits` decides. `wanted` is the hint in
    words, `schema` its JSON Schema. `inside` yields the parts of a container, and `problem` says what is
    wrong with a value whose parts are all right.
    """

    wanted: str
    fits: Callable[[Any], bool]
    schema: Mapping[str, Any]
    fast_types: frozenset[type] = _NOTHING
    inside: Callable[[Any], Inside] = _empty
    problem: Callable[[Any], str] = _of_type


ANYTHING: Final = Shape("anything", lambda _value: True, {})


def shape_of(hint: Any) -> Shape:
    """Return the shape of a hint.

    >>> shape = shape_of(list[int | None])
    >>> shape.wanted, shape.fits([1, None]), shape.fits(["1"]), shape.fits((1,))
    ('list[int or None]', True, False, False)
    >>> shape_of(Callable[[int], str]) is ANYTHING
    True
    """
    try:
        return _shape(hint, ())
    except (TypeError, ValueError, AttributeError, NameError, SyntaxError, RecursionError):
        return ANYTHING  # an application's own class or metaclass may raise anything when inspected


def with_default(shape: Shape, default: Any) -> Shape:
    """Return a shape that also allows the parameter's default, whatever its hint says, as Python does.

    >>> with_default(shape_of(int), None).wanted
    'int or None'
    """
    if shape.fits(default):
        return shape
    if default is None:
        return _either([shape, _SCALARS[_NONE]])

    def fits(value: Any) -> bool:
        return value is default or shape.fits(value)

    return replace(shape, fits=fits)


def _shape(hint: Any, seen: tuple[Any, ...]) -> Shape:
    """Compile a hint. A recursive hint is followed once; `seen` bounds chains of aliases."""
    if len(seen) > _MAX_ALIASES or any(hint is one for one in seen):
        return ANYTHING
    inner = _meant(hint)
    if inner is not hint:
        return _shape(inner, (*seen, hint))
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in {Union, types.UnionType}:
        return _either([_shape(one, seen) for one in parts])
    if origin is Literal:
        return _choice(parts)
    if typing.is_typeddict(hint):
        return _record(hint, (*seen, hint))
    kind = _class(origin or hint)
    if kind is None:
        return ANYTHING
    if issubclass(kind, Enum):
        return _member(kind)
    make = _CONTAINERS.get(kind)
    if make is not None:
        return make(parts, seen)
    return _SCALARS.get(kind, ANYTHING) if origin is None else ANYTHING


def _class(hint: object) -> type[object] | None:
    return hint if isinstance(hint, type) else None


def _meant(hint: Any) -> Any:
    """Unwrap Annotated, NewType and `type` aliases."""
    if typing.get_origin(hint) is Annotated:
        return typing.get_args(hint)[0]
    if isinstance(hint, type) or typing.get_origin(hint) is not None:
        return hint
    for name in ("__supertype__", "__value__"):  # NewType; a `type` statement
        try:
            return getattr(hint, name)
        except (AttributeError, NameError, TypeError):  # missing, or it uses names only type checkers see
            continue
    return hint


# ── single values ────────────────────────────────────────────────────────────


def _scalar(name: str, kinds: tuple[type, ...], fast_types: frozenset[type], **schema: Any) -> Shape:
    # By type alone, not isinstance: a lazy proxy may raise when asked for its class.
    return Shape(name, lambda value: issubclass(type(value), kinds), schema, fast_types)


def _plain(kind: type, json_type: str, **more: Any) -> Shape:
    return _scalar(kind.__name__, (kind,), frozenset({kind}), type=json_type, **more)


_SCALARS: Final[Mapping[type, Shape]] = {
    _NONE: _scalar("None", (_NONE,), frozenset({_NONE}), type="null"),
    str: _plain(str, "string"),
    bool: _plain(bool, "boolean"),
    int: _scalar("int", (int,), frozenset({int, bool}), type="integer"),
    float: _scalar("float", (float, int), frozenset({float, int, bool}), type="number"),
    # Type checkers accept the last two as bytes; the payload check refuses them with better advice.
    bytes: _scalar("bytes", (bytes, bytearray, memoryview), frozenset({bytes}), type="string", format="byte"),
    datetime: _plain(datetime, "string", format="date-time"),
    date: _scalar("date", (date,), frozenset({date, datetime}), type="string", format="date"),
    time: _plain(time, "string", format="time"),
    timedelta: _plain(timedelta, "string", format="duration"),
    Decimal: _plain(Decimal, "string", format="decimal"),
    UUID: _plain(UUID, "string", format="uuid"),
}


def _member(kind: type[Enum]) -> Shape:
    names, wire_name = list(kind.__members__), kind.__qualname__
    if issubclass(kind, Flag):
        schema: dict[str, Any] = {"type": "array", "format": "flags", "items": {"enum": names}}
    else:
        schema = {"enum": names, "format": "enum"}
    if not names:
        return ANYTHING  # a base class without members
    return _scalar(kind.__name__, (kind,), frozenset({kind}), **schema, title=wire_name)


def _choice(values: tuple[Any, ...]) -> Shape:
    def fits(value: Any) -> bool:
        return any(type(value) is type(one) and value == one for one in values)

    kinds = {exact(one) for one in values}
    schema: dict[str, Any] = {}
    if kinds <= {str, int, bool, _NONE}:
        schema = {"enum": list(values)}
    elif len(kinds) == 1 and isinstance(values[0], Enum):
        title = type(values[0]).__qualname__
        schema = {"enum": [one.name for one in values], "format": "enum", "title": title}

    def problem(value: Any) -> str:
        return NO_CHOICE if exact(value) in kinds else _of_type(value)

    return Shape("one of " + ", ".join(map(repr, values)), fits, schema, problem=problem)


def _either(several: list[Shape]) -> Shape:
    """Return a shape that allows what any of these allows."""
    if any(one is ANYTHING for one in several):
        return ANYTHING

    def inside(value: Any) -> Inside:
        containers = [found for one in several if (found := list(one.inside(value)))]
        return containers[0] if len(containers) == 1 else ()

    fast_types = frozenset[type]().union(*(one.fast_types for one in several))
    return Shape(
        " or ".join(one.wanted for one in several),
        lambda value: type(value) in fast_types or any(one.fits(value) for one in several),
        {"anyOf": [one.schema for one in several]} if all(one.schema for one in several) else {},
        fast_types,
        inside,
    )


# ── containers ───────────────────────────────────────────────────────────────

_CHECKED_INSIDE: Final = frozenset({list, tuple, set, frozenset})
"""Containers whose items are checked. A payload refuses other kinds, and their code must not run."""


def _steps(value: Any) -> Iterator[tuple[Step, Any]]:
    if type(value) in {list, tuple}:
        yield from enumerate(value)
    else:
        yield from ((..., item) for item in value)


def _several(wanted: str, kinds: tuple[type, ...], items: Shape, schema: Mapping[str, Any]) -> Shape:
    """Return the shape of containers of these kinds whose items all fit."""
    name = f"{wanted}[{items.wanted}]" if items is not ANYTHING else wanted
    if items is ANYTHING:
        fast_types = frozenset(kinds) & _CHECKED_INSIDE
        return Shape(name, lambda value: issubclass(type(value), kinds), schema, fast_types)
    fast_types, item_fits = items.fast_types, items.fits

    def fits(value: Any) -> bool:
        if type(value) not in _CHECKED_INSIDE or not issubclass(type(value), kinds):
            return issubclass(type(value), kinds)
        return fast_types.issuperset(map(type, value)) or all(map(item_fits, value))

    def inside(value: Any) -> Inside:
        if type(value) in _CHECKED_INSIDE and issubclass(type(value), kinds):
            return ((step, item, items) for step, item in _steps(value))
        return ()

    return Shape(name, fits, schema, inside=inside)


def _array(parts: tuple[Any, ...], seen: tuple[Any, ...], wanted: str, *kinds: type, **more: Any) -> Shape:
    items = _shape(parts[0], seen) if parts else ANYTHING
    schema: dict[str, Any] = {"type": "array", **more}
    if items.schema:
        schema["items"] = items.schema
    return _several(wanted, kinds, items, schema)


def _sequence(kind: Any) -> Callable[[tuple[Any, ...], tuple[Any, ...]], Shape]:
    def make(parts: tuple[Any, ...], seen: tuple[Any, ...]) -> Shape:
        shape = _array(parts, seen, kind.__name__, kind, format="sequence")
        # A str is a sequence of str, too: then the schema must allow anything.
        is_text = issubclass(str, kind) and (not parts or _shape(parts[0], seen).fits(""))
        return replace(shape, schema={}) if is_text else shape

    return make


def _tuple(parts: tuple[Any, ...], seen: tuple[Any, ...]) -> Shape:
    if len(parts) == 2 and parts[1] is ...:  # noqa: PLR2004 (`tuple[int, ...]`)
        return _array(parts[:1], seen, "tuple", tuple, format="tuple")
    if not parts or any(_is_unpacked(one) for one in parts):
        return _array((), seen, "tuple", tuple, format="tuple")
    shapes = [_shape(one, seen) for one in parts]

    def is_whole(value: Any) -> bool:
        return exact(value) is tuple and len(value) == len(shapes)

    def fits(value: Any) -> bool:
        if is_whole(value):
            return all(one.fits(item) for one, item in zip(shapes, value, strict=True))
        return exact(value) is not tuple and issubclass(type(value), tuple)

    def inside(value: Any) -> Inside:
        return ((at, item, shapes[at]) for at, item in enumerate(value)) if is_whole(value) else ()

    schema = {"type": "array", "format": "tuple", "prefixItems": [one.schema for one in shapes]}
    wanted = f"tuple[{', '.join(one.wanted for one in shapes)}]"
    return Shape(wanted, fits, schema, inside=inside, problem=_of_length)


def _is_unpacked(part: Any) -> bool:
    return typing.get_origin(part) is Unpack or getattr(part, "__unpacked__", False) is True


def _mapping(kind: Any) -> Callable[[tuple[Any, ...], tuple[Any, ...]], Shape]:
    def make(parts: tuple[Any, ...], seen: tuple[Any, ...]) -> Shape:
        values = _shape(parts[1], seen) if len(parts) == 2 else ANYTHING  # noqa: PLR2004 (key and value)
        schema: dict[str, Any] = {"type": "object"}
        if values.schema:
            schema["additionalProperties"] = values.schema
        wanted = kind.__name__ if values is ANYTHING else f"{kind.__name__}[…, {values.wanted}]"

        def fits(value: Any) -> bool:
            if exact(value) is not dict or values is ANYTHING:
                return issubclass(type(value), kind)
            held = value.values()
            return values.fast_types.issuperset(map(type, held)) or all(map(values.fits, held))

        def inside(value: Any) -> Inside:
            return _fields(value, dict.fromkeys(value, values)) if exact(value) is dict else ()

        fast_types = frozenset({dict}) if values is ANYTHING else _NOTHING
        return Shape(wanted, fits, schema, fast_types, inside)

    return make


def _fields(value: dict[str, Any], shapes: Mapping[str, Shape]) -> Inside:
    # A key that is not a str has no step; the payload check refuses it.
    return [(key, value[key], one) for key, one in shapes.items() if key in value and type(key) is str]


def _record(hint: Any, seen: tuple[Any, ...]) -> Shape:
    """Return the shape of a TypedDict: its known fields must fit; missing and extra keys are allowed."""
    shapes = {name: _shape(one, seen) for name, one in typing.get_type_hints(hint).items()}

    def inside(value: Any) -> Inside:
        return _fields(value, shapes) if exact(value) is dict else ()

    def fits(value: Any) -> bool:
        return issubclass(type(value), dict) and all(one.fits(item) for _, item, one in inside(value))

    schema = {"type": "object", "properties": {name: one.schema for name, one in shapes.items()}}
    return Shape(hint.__name__, fits, schema, inside=inside)


_CONTAINERS: Final[Mapping[Any, Callable[[tuple[Any, ...], tuple[Any, ...]], Shape]]] = {
    list: lambda parts, seen: _array(parts, seen, "list", list),
    set: lambda parts, seen: _array(parts, seen, "set", set, format="set"),
    frozenset: lambda parts, seen: _array(parts, seen, "frozenset", frozenset, format="frozenset"),
    tuple: _tuple,
    dict: _mapping(dict),
    abc.Mapping: _mapping(abc.Mapping),
    abc.MutableMapping: _mapping(abc.MutableMapping),
    abc.Sequence: _sequence(abc.Sequence),
    abc.MutableSequence: _sequence(abc.MutableSequence),
    abc.Collection: _sequence(abc.Collection),
    abc.Iterable: _sequence(abc.Iterable),
    abc.Set: lambda parts, seen: _array(parts, seen, "Set", set, frozenset, format="set"),
    abc.MutableSet: lambda parts, seen: _array(parts, seen, "MutableSet", set, format="set"),
}
