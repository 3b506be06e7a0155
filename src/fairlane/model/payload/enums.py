"""Encode Enum members, and collect the Enum classes that a payload may name (S5).

Never imports a class by its stored name: the application's type hints list the classes.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum, Flag
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, TypeVar

from fairlane.model.payload.paths import shown
from fairlane.model.payload.tagged import Node, Unreadable, Unwritable, as_array, is_utf8

Enums: TypeAlias = Mapping[str, type[Enum]]
"""Classes by wire name, which is `__qualname__`."""

NO_ENUMS: Final[Enums] = MappingProxyType({})

_ANNOTATE = "annotate the parameter with the Enum class, so that a worker knows it"
_FORM = "is not of the form that $enum has"


class UnknownMember(Unreadable):
    """A well-formed member whose class or name is not known here."""


def write_enum(member: Enum, known: Enums | None) -> Node:
    """Return a node with class and member; a combination of flags lists its parts.

    >>> from enum import IntFlag
    >>> Mode = IntFlag("Mode", "READ WRITE RUN")
    >>> write_enum(Mode.READ, None), write_enum(Mode.READ | Mode.RUN, None)
    ({'$enum': ['Mode', 'READ']}, {'$enum': ['Mode', 'READ', 'RUN']})
    """
    kind = type(member)
    wire_name = kind.__qualname__
    if known is not None and known.get(wire_name) is not kind:
        raise Unwritable(f"is of the Enum {shown(wire_name)}, which the task does not name", _ANNOTATE)
    content = [wire_name, *_names(member)]
    if not all(map(is_utf8, content)):
        raise Unwritable("is an Enum member with a lone surrogate in its name", "rename it")
    return {"$enum": content}


def _names(member: Enum) -> list[str]:
    kind = type(member)
    if kind.__members__.get(member.name) is member:
        return [member.name]
    parts = _parts(member) if isinstance(member, Flag) else None
    if parts is None:
        raise Unwritable(
            f"is a {shown(kind.__qualname__)} that its class does not declare", "use declared members"
        )
    return parts


def _parts(member: Flag) -> list[str] | None:
    """Return the declared flags of a combination; None if some of its bits have no name."""
    kind = type(member)
    names: list[str] = []
    whole = kind(0)
    for name, part in kind.__members__.items():
        if part in member and part not in whole:
            names.append(name)
            whole |= part
    return names if whole is member else None


def name_enum(node: Node) -> str:
    """Return a member as text, as Python writes it, for a reader without its class.

    >>> name_enum({"$enum": ["Colour", "RED"]}), name_enum({"$enum": ["Mode", "READ", "RUN"]})
    ('Colour.RED', 'Mode.READ|RUN')
    """
    wire_name, names = _content(node)
    return f"{wire_name}.{'|'.join(names)}"


def _content(node: Node) -> tuple[str, list[str]]:
    content = as_array(node["$enum"]) or [None]
    wire_name, *names = [part for part in content if isinstance(part, str)] or [""]
    if len(node) != 1 or len(names) + 1 != len(content) or not wire_name:
        raise Unreadable(_FORM)
    return wire_name, names


def read_enum(node: Node, known: Enums) -> Enum:
    """Return the member of a node, using only the classes that the application named."""
    wire_name, names = _content(node)
    kind = known.get(wire_name)
    if kind is None:
        raise UnknownMember(f"is of the Enum {shown(wire_name)}, which the task does not name; {_ANNOTATE}")
    try:
        members = [kind.__members__[name] for name in names]
    except KeyError:
        raise UnknownMember(f"is no member that the Enum {shown(wire_name)} still has") from None
    if issubclass(kind, Flag):
        whole = kind(0)
        for name in names:
            whole |= kind.__members__[name]
        return whole
    if len(members) != 1:
        raise Unreadable(_FORM)
    return members[0]


def enums_of(hints: Iterable[Any]) -> dict[str, type[Enum]]:
    """Collect every Enum class that type hints refer to, by wire name.

    Looks into unions, containers, `Annotated`, `Literal`, aliases, and the fields of dataclasses, named
    tuples and typed dicts. Two classes with the same wire name raise ValueError.

    >>> Colour = Enum("Colour", "RED GREEN")
    >>> enums_of([int, list[Colour | None]])
    {'Colour': <enum 'Colour'>}
    """
    found: dict[str, type[Enum]] = {}
    # By id: hints need not be hashable. The hint is stored too, so that no id is reused.
    seen: dict[int, Any] = {}
    waiting = list(hints)
    while waiting:
        hint = waiting.pop()
        if id(hint) in seen:
            continue
        seen[id(hint)] = hint
        if isinstance(hint, type) and issubclass(hint, Enum):
            _add(found, hint)
            continue
        # Names that only a type checker sees cannot be resolved. An Enum behind one is refused at enqueue.
        with suppress(NameError, AttributeError, TypeError):
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
    """Return the hints inside a hint."""
    if typing.get_origin(hint) is Literal:
        yield from (type(value) for value in typing.get_args(hint) if isinstance(value, Enum))
        return
    if isinstance(hint, list):  # the parameters of a Callable
        yield from hint
        return
    if isinstance(hint, TypeVar):
        yield from (hint.__bound__, *hint.__constraints__)
        return
    yield typing.get_origin(hint)
    yield from typing.get_args(hint)
    yield getattr(hint, "__supertype__", None)  # NewType
    yield getattr(hint, "__value__", None)  # a `type` statement
    if hasattr(hint, "__dataclass_fields__") or hasattr(hint, "_fields") or typing.is_typeddict(hint):
        yield from typing.get_type_hints(hint).values()
