"""What values a type hint allows: worked out once, asked at every enqueue, and described as JSON Schema.

A hint that is not understood allows everything. Knows no job, no store and no setting, and runs no code of
the values that it looks at.
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

from fairlane.app.checks import kind_of
from fairlane.model.trail import Step

Inside: TypeAlias = Iterable[tuple[Step, Any, "Shape"]]
"""What a value holds: where, what, and what it should be."""

NO_CHOICE: Final = "is none of the allowed values"

_NOTHING: Final[frozenset[type]] = frozenset()
_NONE: Final = type(None)
_MOST_NAMES: Final = 32


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
    """What one hint allows.

    A value whose exact type is among `quick` fits without a further look; of any other `fits` decides.
    `wanted` names the hint, `described` is its JSON Schema, `inside` gives what a container holds, and
    `blame` says what is wrong with a value of which nothing inside is.
    """

    wanted: str
    fits: Callable[[Any], bool]
    described: Mapping[str, Any]
    quick: frozenset[type] = _NOTHING
    inside: Callable[[Any], Inside] = _empty
    blame: Callable[[Any], str] = _of_type


ANYTHING: Final = Shape("anything", lambda _value: True, {})


def shape_of(hint: Any) -> Shape:
    """Return what a hint allows.

    >>> shape = shape_of(list[int | None])
    >>> shape.wanted, shape.fits([1, None]), shape.fits(["1"]), shape.fits((1,))
    ('list[int or None]', True, False, False)
    >>> shape_of(Callable[[int], str]) is ANYTHING
    True
    """
    try:
        return _shape(hint, ())
    except (TypeError, ValueError, AttributeError, NameError, SyntaxError, RecursionError):
        return ANYTHING  # whatever an application's own class or metaclass does when it is looked at


def with_default(shape: Shape, default: Any) -> Shape:
    """Allow a parameter's default too, whatever its hint says: Python does.

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


def _shape(hint: Any, above: tuple[Any, ...]) -> Shape:
    """Work a hint out; one that holds itself is followed once, and no name stands for a name without end."""
    if len(above) > _MOST_NAMES or any(hint is one for one in above):
        return ANYTHING
    inner = _meant(hint)
    if inner is not hint:
        return _shape(inner, (*above, hint))
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in {Union, types.UnionType}:
        return _either([_shape(one, above) for one in parts])
    if origin is Literal:
        return _choice(parts)
    if typing.is_typeddict(hint):
        return _record(hint, (*above, hint))
    kind = _class(origin or hint)
    if kind is None:
        return ANYTHING
    if issubclass(kind, Enum):
        return _member(kind)
    make = _CONTAINERS.get(kind)
    if make is not None:
        return make(parts, above)
    return _SCALARS.get(kind, ANYTHING) if origin is None else ANYTHING


def _class(hint: object) -> type[object] | None:
    return hint if isinstance(hint, type) else None


def _meant(hint: Any) -> Any:
    """Take off what only names or annotates another hint."""
    if typing.get_origin(hint) is Annotated:
        return typing.get_args(hint)[0]
    if isinstance(hint, type) or typing.get_origin(hint) is not None:
        return hint
    for name in ("__supertype__", "__value__"):  # NewType; a `type` statement
        try:
            return getattr(hint, name)
        except (AttributeError, NameError, TypeError):  # not there, or of names that only a checker sees
            continue
    return hint


# ── single values ────────────────────────────────────────────────────────────


def _scalar(name: str, kinds: tuple[type, ...], quick: frozenset[type], **described: Any) -> Shape:
    # By the type alone: a proxy that stands for nothing yet raises when it is asked for its class.
    return Shape(name, lambda value: issubclass(type(value), kinds), described, quick)


def _plain(kind: type, word: str, **more: Any) -> Shape:
    return _scalar(kind.__name__, (kind,), frozenset({kind}), type=word, **more)


_SCALARS: Final[Mapping[type, Shape]] = {
    _NONE: _scalar("None", (_NONE,), frozenset({_NONE}), type="null"),
    str: _plain(str, "string"),
    bool: _plain(bool, "boolean"),
    int: _scalar("int", (int,), frozenset({int, bool}), type="integer"),
    float: _scalar("float", (float, int), frozenset({float, int, bool}), type="number"),
    # The last two mean bytes to type checkers; the payload refuses them with advice of its own.
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
        described: dict[str, Any] = {"type": "array", "format": "flags", "items": {"enum": names}}
    else:
        described = {"enum": names, "format": "enum"}
    if not names:
        return ANYTHING  # a class to be derived from
    return _scalar(kind.__name__, (kind,), frozenset({kind}), **described, title=wire_name)


def _choice(values: tuple[Any, ...]) -> Shape:
    def fits(value: Any) -> bool:
        return any(type(value) is type(one) and value == one for one in values)

    kinds = {exact(one) for one in values}
    described: dict[str, Any] = {}
    if kinds <= {str, int, bool, _NONE}:
        described = {"enum": list(values)}
    elif len(kinds) == 1 and isinstance(values[0], Enum):
        title = type(values[0]).__qualname__
        described = {"enum": [one.name for one in values], "format": "enum", "title": title}

    def blame(value: Any) -> str:
        return NO_CHOICE if exact(value) in kinds else _of_type(value)

    return Shape("one of " + ", ".join(map(repr, values)), fits, described, blame=blame)


def _either(several: list[Shape]) -> Shape:
    """Allow what any of these allows; if one is not understood, that is everything."""
    if any(one is ANYTHING for one in several):
        return ANYTHING

    def inside(value: Any) -> Inside:
        containers = [found for one in several if (found := list(one.inside(value)))]
        return containers[0] if len(containers) == 1 else ()

    quick = frozenset[type]().union(*(one.quick for one in several))
    return Shape(
        " or ".join(one.wanted for one in several),
        lambda value: type(value) in quick or any(one.fits(value) for one in several),
        {"anyOf": [one.described for one in several]} if all(one.described for one in several) else {},
        quick,
        inside,
    )


# ── containers ───────────────────────────────────────────────────────────────

_LOOKED_INTO: Final = frozenset({list, tuple, set, frozenset})
"""Whose items are looked at. A payload refuses other kinds, and their code is not to be run."""


def _steps(value: Any) -> Iterator[tuple[Step, Any]]:
    if type(value) in {list, tuple}:
        yield from enumerate(value)
    else:
        yield from ((..., item) for item in value)


def _several(wanted: str, kinds: tuple[type, ...], items: Shape, described: Mapping[str, Any]) -> Shape:
    """Allow containers of these kinds, all of whose items fit."""
    name = f"{wanted}[{items.wanted}]" if items is not ANYTHING else wanted
    if items is ANYTHING:
        quick = frozenset(kinds) & _LOOKED_INTO
        return Shape(name, lambda value: issubclass(type(value), kinds), described, quick)
    quick, fits_item = items.quick, items.fits

    def fits(value: Any) -> bool:
        if type(value) not in _LOOKED_INTO or not issubclass(type(value), kinds):
            return issubclass(type(value), kinds)
        return quick.issuperset(map(type, value)) or all(map(fits_item, value))

    def inside(value: Any) -> Inside:
        if type(value) in _LOOKED_INTO and issubclass(type(value), kinds):
            return ((step, item, items) for step, item in _steps(value))
        return ()

    return Shape(name, fits, described, inside=inside)


def _array(parts: tuple[Any, ...], above: tuple[Any, ...], wanted: str, *kinds: type, **more: Any) -> Shape:
    items = _shape(parts[0], above) if parts else ANYTHING
    described: dict[str, Any] = {"type": "array", **more}
    if items.described:
        described["items"] = items.described
    return _several(wanted, kinds, items, described)


def _sequence(kind: Any) -> Callable[[tuple[Any, ...], tuple[Any, ...]], Shape]:
    def make(parts: tuple[Any, ...], above: tuple[Any, ...]) -> Shape:
        shape = _array(parts, above, kind.__name__, kind, format="sequence")
        # A text is a sequence of texts, too: then nothing can be said of it.
        is_text = issubclass(str, kind) and (not parts or _shape(parts[0], above).fits(""))
        return replace(shape, described={}) if is_text else shape

    return make


def _tuple(parts: tuple[Any, ...], above: tuple[Any, ...]) -> Shape:
    if len(parts) == 2 and parts[1] is ...:  # noqa: PLR2004 (`tuple[int, ...]`)
        return _array(parts[:1], above, "tuple", tuple, format="tuple")
    if not parts or any(_is_unpacked(one) for one in parts):
        return _array((), above, "tuple", tuple, format="tuple")
    shapes = [_shape(one, above) for one in parts]

    def is_whole(value: Any) -> bool:
        return exact(value) is tuple and len(value) == len(shapes)

    def fits(value: Any) -> bool:
        if is_whole(value):
            return all(one.fits(item) for one, item in zip(shapes, value, strict=True))
        return exact(value) is not tuple and issubclass(type(value), tuple)

    def inside(value: Any) -> Inside:
        return ((at, item, shapes[at]) for at, item in enumerate(value)) if is_whole(value) else ()

    described = {"type": "array", "format": "tuple", "prefixItems": [one.described for one in shapes]}
    wanted = f"tuple[{', '.join(one.wanted for one in shapes)}]"
    return Shape(wanted, fits, described, inside=inside, blame=_of_length)


def _is_unpacked(part: Any) -> bool:
    return typing.get_origin(part) is Unpack or getattr(part, "__unpacked__", False) is True


def _mapping(kind: Any) -> Callable[[tuple[Any, ...], tuple[Any, ...]], Shape]:
    def make(parts: tuple[Any, ...], above: tuple[Any, ...]) -> Shape:
        values = _shape(parts[1], above) if len(parts) == 2 else ANYTHING  # noqa: PLR2004 (key and value)
        described: dict[str, Any] = {"type": "object"}
        if values.described:
            described["additionalProperties"] = values.described
        wanted = kind.__name__ if values is ANYTHING else f"{kind.__name__}[…, {values.wanted}]"

        def fits(value: Any) -> bool:
            if exact(value) is not dict or values is ANYTHING:
                return issubclass(type(value), kind)
            held = value.values()
            return values.quick.issuperset(map(type, held)) or all(map(values.fits, held))

        def inside(value: Any) -> Inside:
            return _fields(value, dict.fromkeys(value, values)) if exact(value) is dict else ()

        quick = frozenset({dict}) if values is ANYTHING else _NOTHING
        return Shape(wanted, fits, described, quick, inside)

    return make


def _fields(value: dict[str, Any], shapes: Mapping[str, Shape]) -> Inside:
    # A key that is no text has no step; the payload refuses it.
    return [(key, value[key], one) for key, one in shapes.items() if key in value and type(key) is str]


def _record(hint: Any, above: tuple[Any, ...]) -> Shape:
    """Allow a dict whose known fields fit; which of them there are is the handler's business."""
    shapes = {name: _shape(one, above) for name, one in typing.get_type_hints(hint).items()}

    def inside(value: Any) -> Inside:
        return _fields(value, shapes) if exact(value) is dict else ()

    def fits(value: Any) -> bool:
        return issubclass(type(value), dict) and all(one.fits(item) for _, item, one in inside(value))

    described = {"type": "object", "properties": {name: one.described for name, one in shapes.items()}}
    return Shape(hint.__name__, fits, described, inside=inside)


_CONTAINERS: Final[Mapping[Any, Callable[[tuple[Any, ...], tuple[Any, ...]], Shape]]] = {
    list: lambda parts, above: _array(parts, above, "list", list),
    set: lambda parts, above: _array(parts, above, "set", set, format="set"),
    frozenset: lambda parts, above: _array(parts, above, "frozenset", frozenset, format="frozenset"),
    tuple: _tuple,
    dict: _mapping(dict),
    abc.Mapping: _mapping(abc.Mapping),
    abc.MutableMapping: _mapping(abc.MutableMapping),
    abc.Sequence: _sequence(abc.Sequence),
    abc.MutableSequence: _sequence(abc.MutableSequence),
    abc.Collection: _sequence(abc.Collection),
    abc.Iterable: _sequence(abc.Iterable),
    abc.Set: lambda parts, above: _array(parts, above, "Set", set, frozenset, format="set"),
    abc.MutableSet: lambda parts, above: _array(parts, above, "MutableSet", set, format="set"),
}
