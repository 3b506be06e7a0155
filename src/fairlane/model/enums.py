"""Which Enum classes a payload may name, and how a member is written (S5).

Never finds a class by its stored name: the application's type hints say which classes there are.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, Flag
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, TypeVar

from fairlane.model.tagged import Node, Unreadable, Unwritable
from fairlane.model.trail import shown

Enums: TypeAlias = Mapping[str, type[Enum]]
"""Wire name (the class's `__qualname__`) to class."""

NO_ENUMS: Final[Enums] = MappingProxyType({})

_ANNOTATE = "annotate the parameter with the Enum class, so that a worker knows it"


def write_enum(member: Enum, known: Enums | None) -> Node:
    """Name the class and the member; a combination of flags is named by its parts.

    >>> from enum import IntFlag
    >>> Mode = IntFlag("Mode", "READ WRITE RUN")
    >>> write_enum(Mode.READ, None), write_enum(Mode.READ | Mode.RUN, None)
    ({'$enum': ['Mode', 'READ']}, {'$enum': ['Mode', 'READ', 'RUN']})
    """
    kind = type(member)
    wire_name = kind.__qualname__
    if known is not None and known.get(wire_name) is not kind:
        raise Unwritable(f"is a member of the Enum {wire_name}, which the task does not name", _ANNOTATE)
    return {"$enum": [wire_name, *_names(member)]}


def _names(member: Enum) -> list[str]:
    kind = type(member)
    if kind.__members__.get(member.name) is member:
        return [member.name]
    parts = [part for part in kind if isinstance(member, Flag) and part in member]
    if reduce(or_, parts, kind(0)) is not member:
        raise Unwritable(
            f"is a {kind.__qualname__} with bits that have no name", "use members that the class declares"
        )
    return [part.name for part in parts]


def read_enum(node: Node, known: Enums) -> Enum:
    """Give the member back, through the classes that the application named and no others."""
    content = node["$enum"]
    if len(node) != 1 or type(content) is not list or not all(type(part) is str for part in content):
        raise Unreadable("is not of the form that $enum has")
    wire_name, *names = content or [""]
    kind = known.get(wire_name)
    if kind is None:
        raise Unreadable(f"is of the Enum {shown(wire_name)}, which the task does not name; {_ANNOTATE}")
    members = [kind.__members__.get(name) for name in names]
    if None in members:
        raise Unreadable(f"is no member that the Enum {shown(wire_name)} still has")
    if issubclass(kind, Flag):
        return reduce(or_, members, kind(0))
    if len(members) != 1:
        raise Unreadable("is not of the form that $enum has")
    return members[0]


def enums_of(hints: Iterable[Any]) -> dict[str, type[Enum]]:
    """Collect every Enum class that can be reached from type hints, under its wire name.

    Looks into unions, containers, `Annotated`, `Literal`, aliases, and the fields of dataclasses, named
    tuples and typed dicts. Two classes of one name cannot both be meant: `ValueError`.

    >>> Colour = Enum("Colour", "RED GREEN")
    >>> enums_of([int, list[Colour | None]])
    {'Colour': <enum 'Colour'>}
    """
    found: dict[str, type[Enum]] = {}
    # By id: hints need not be hashable. Kept whole, so that no id is used twice.
    seen: dict[int, Any] = {}
    waiting = list(hints)
    while waiting:
        hint = waiting.pop()
        if id(hint) in seen:
            continue
        seen[id(hint)] = hint
        if isinstance(hint, type) and issubclass(hint, Enum):
            _add(found, hint)
        else:
            waiting.extend(_inside(hint))
    return found


def _add(found: dict[str, type[Enum]], kind: type[Enum]) -> None:
    wire_name = kind.__qualname__
    other = found.setdefault(wire_name, kind)
    if other is not kind:
        message = (
            f"two Enum classes are called {wire_name}, in {other.__module__} and {kind.__module__}; "
            "rename one, since a payload names its Enums"
        )
        raise ValueError(message)


def _inside(hint: Any) -> Iterator[Any]:
    """Give the hints that a hint is made of."""
    if typing.get_origin(hint) is Literal:
        yield from (type(value) for value in typing.get_args(hint) if isinstance(value, Enum))
        return
    if isinstance(hint, list):  # the parameters of a Callable
        yield from hint
        return
    if isinstance(hint, TypeVar):
        yield from (hint.__bound__, *hint.__constraints__)
        return
    # Annotated's metadata is among its arguments; none of it is an Enum class by accident.
    yield from typing.get_args(hint)
    yield getattr(hint, "__supertype__", None)  # NewType
    yield getattr(hint, "__value__", None)  # a `type` statement
    if isinstance(hint, type) and not isinstance(hint, types.GenericAlias):
        yield from _fields(hint)


def _fields(kind: type) -> Iterator[Any]:
    record = hasattr(kind, "__dataclass_fields__") or hasattr(kind, "_fields") or typing.is_typeddict(kind)
    if record:
        try:
            yield from typing.get_type_hints(kind).values()
        except NameError:
            # A name that only a type checker sees. An Enum behind it is refused at enqueue, with advice.
            return
