"""Turn arguments of plain JSON into the values that a published schema describes, or say what does not fit.

Values that have their type already (from Python) stay as they are. Knows no handler: the schema is all there
is, and Enum members are named after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum, Flag
from typing import Any, Final, TypeAlias, cast

from fairlane.app.checks import Sheet, kind_of
from fairlane.app.config.policy_kinds import nearest
from fairlane.app.formats import FORMATS, read_format
from fairlane.app.shapes import NO_CHOICE, exact
from fairlane.model.enums import write_enum
from fairlane.model.tagged import Unwritable, as_array, as_object
from fairlane.model.trail import Trail, path_of
from fairlane.model.writing import MOST_PROBLEMS

Schema: TypeAlias = Mapping[str, Any]
Enums: TypeAlias = Mapping[str, type[Enum]]

_WORDS: Final[Mapping[type[object], frozenset[str]]] = {
    str: frozenset({"string"}),
    int: frozenset({"integer", "number"}),
    float: frozenset({"number"}),
    bool: frozenset({"boolean"}),
    type(None): frozenset({"null"}),
    list: frozenset({"array"}),
    dict: frozenset({"object"}),
}
_COLLECTIONS: Final[Mapping[str, Callable[[Any], Any]]] = {"set": set, "frozenset": frozenset, "tuple": tuple}


def read_arguments(
    sheet: Sheet, arguments: Mapping[str, Any], schema: Schema, enums: Enums
) -> dict[str, Any]:
    """Return the arguments as the schema types them; note each that is missing, not known, or does not fit.

    >>> sheet = Sheet(0)
    >>> schema = {"properties": {"day": {"type": "string", "format": "date"}}, "required": ["to"]}
    >>> read_arguments(sheet, {"day": "2026-07-01"}, schema, {})
    {'day': datetime.date(2026, 7, 1)}
    >>> print(*sheet.problems)
    [0] arguments.to: is missing; the task needs it
    """
    properties = as_object(schema.get("properties")) or {}
    for name in as_array(schema.get("required")) or ():
        if name not in arguments:
            sheet.add(f"arguments.{name}", "is missing", "the task needs it", "arguments")
    reader = _Reader(sheet, enums)
    read: dict[str, Any] = {}
    for name, value in arguments.items():
        if name in properties:
            read[name] = reader.read(value, properties[name], ((None, "arguments"), name))
            continue
        read[name] = value
        if schema.get("additionalProperties") is False:
            message = f"is no parameter of the task{nearest(name, list(properties))}"
            sheet.add(f"arguments.{name}", message, f"it has: {', '.join(properties) or 'none'}", "arguments")
    return read


def is_fitting(value: Any, schema: Schema, enums: Enums) -> bool:
    """Whether a value can be read as a schema says.

    >>> is_fitting("1.20", {"type": "string", "format": "decimal"}, {}), is_fitting("x", {"type": "null"}, {})
    (True, False)
    """
    sheet = Sheet(0)
    _Reader(sheet, enums).read(value, schema, (None, "value"))
    return not sheet.problems


def enums_in(schema: object) -> dict[str, type[Enum]]:
    """Make a class for each Enum that a schema names, with its members and nothing else of the original.

    A member of it is stored like one of the original: by the names of class and member (S5).

    >>> colour = enums_in({"enum": ["RED"], "format": "enum", "title": "Colour"})["Colour"]
    >>> list(colour)
    [<Colour.RED: 'RED'>]
    """
    names: dict[str, dict[str, None]] = {}
    flags: set[str] = set()
    for one in _enum_schemas(schema):
        title = str(one["title"])
        names.setdefault(title, {}).update(dict.fromkeys(_choices(one)))  # a Literal names some of them
        flags |= {title} if one["format"] == "flags" else set()
    return {title: _enum_of(title, list(known), is_flag=title in flags) for title, known in names.items()}


def _enum_schemas(schema: object) -> Iterator[dict[str, Any]]:
    node = as_object(schema)
    if node is not None and node.get("format") in {"enum", "flags"} and type(node.get("title")) is str:
        yield node
        return
    inner: Any = node.values() if node is not None else as_array(schema) or ()
    for one in inner:
        yield from _enum_schemas(one)


def _choices(schema: Schema) -> list[str]:
    """Name the members that a schema of an Enum allows."""
    node = as_object(schema.get("items")) or {} if schema["format"] == "flags" else schema
    return [str(name) for name in as_array(node.get("enum")) or ()]


def _enum_of(title: str, names: list[str], *, is_flag: bool) -> type[Enum]:
    make: Any = Flag if is_flag else Enum
    kind: type[Enum] = make(title, [(name, 1 << at if is_flag else name) for at, name in enumerate(names)])
    kind.__qualname__ = title
    return kind


class _Reader:
    """Reads one call's values and notes what does not fit."""

    def __init__(self, sheet: Sheet, enums: Enums) -> None:
        self._sheet = sheet
        self._enums = enums

    def read(self, value: Any, schema: Any, at: Trail) -> Any:
        """Return the value as the schema types it; what does not fit is noted and stays as it is."""
        if not isinstance(schema, Mapping):
            return value
        said = cast("Schema", schema)
        form = said.get("format")
        if "anyOf" in said:
            return self._any(value, list(said["anyOf"]), at)
        if form in {"enum", "flags"}:
            return self._member(value, said, at)
        if "enum" in said:
            if not any(type(value) is type(one) and value == one for one in said["enum"]):
                self._note(at, NO_CHOICE, said)
            return value
        if form in FORMATS:
            return self._format(value, said, at)
        if said.get("type") == "array":
            return self._array(value, said, at)
        if not _is_of(value, said):
            self._note(at, f"is of type {kind_of(value)}", said)
        elif type(value) is dict:
            return self._object(cast("dict[str, Any]", value), said, at)
        return value

    def _note(self, at: Trail, message: str, schema: Schema) -> None:
        if len(self._sheet.problems) >= MOST_PROBLEMS:
            return
        self._sheet.add(path_of(at), message, f"give {_wanted(schema)}", "arguments")

    def _any(self, value: Any, options: list[Schema], at: Trail) -> Any:
        """Take the first option that fits; as what JSON has itself before anything that a text stands for."""
        tried: list[tuple[Schema, Sheet]] = []
        for option in sorted(options, key=_has_format):
            sheet = Sheet(self._sheet.index)
            read = _Reader(sheet, self._enums).read(value, option, at)
            if not sheet.problems:
                return read
            tried.append((option, sheet))
        meant = [sheet for option, sheet in tried if _is_of(value, option)]
        if len(meant) == 1:
            self._sheet.take(meant[0].problems)
        else:
            message = "cannot be read as any of these" if meant else f"is of type {kind_of(value)}"
            self._note(at, message, {"anyOf": options})
        return value

    def _format(self, value: Any, schema: Schema, at: Trail) -> Any:
        name = str(schema["format"])
        try:
            return read_format(name, value)
        except ValueError:
            is_text = type(value) is str
            message = f"cannot be read as {name}" if is_text else f"is of type {kind_of(value)}"
            self._note(at, message, schema)
            return value

    def _member(self, value: Any, schema: Schema, at: Trail) -> Any:
        kind, allowed = self._enums.get(str(schema.get("title"))), _choices(schema)
        if kind is None:
            return value
        given = _names_of(value, kind)
        names = as_array(given) if issubclass(kind, Flag) else [given]
        if names is None or any(name not in allowed or name not in kind.__members__ for name in names):
            is_choice = type(given) in {str, list}
            self._note(at, NO_CHOICE if is_choice else f"is of type {kind_of(value)}", schema)
            return value
        members = [kind.__members__[str(name)] for name in names]
        if not issubclass(kind, Flag):
            return members[0]
        whole = kind(0)
        for member in members:
            whole |= cast("Flag", member)
        return whole

    def _array(self, value: Any, schema: Schema, at: Trail) -> Any:
        make = _COLLECTIONS.get(str(schema.get("format")))
        if schema.get("format") == "sequence" and exact(value) is tuple:
            make = tuple
        if exact(value) is not list and exact(value) is not make:
            self._note(at, f"is of type {kind_of(value)}", schema)
            return value
        items, first = list(value), as_array(schema.get("prefixItems"))
        if first is not None and len(first) != len(items):
            self._note(at, f"has {len(items)} item(s)", schema)
            return value
        each = [schema.get("items")] * len(items) if first is None else first
        before = len(self._sheet.problems)
        has_order = exact(value) in {list, tuple}
        read = [
            self.read(item, one, (at, index if has_order else ...))
            for index, (item, one) in enumerate(zip(items, each, strict=True))
        ]
        if make is None or len(self._sheet.problems) > before:
            return read
        return self._collected(make, read, at)

    def _collected(self, make: Callable[[Any], Any], items: list[Any], at: Trail) -> Any:
        try:
            collected = make(items)
        except TypeError:
            self._sheet.add(path_of(at), "has an item that no set can hold", "give plain values", "arguments")
            return items
        if len(collected) != len(items):
            self._sheet.add(path_of(at), "has an item twice", "give each once", "arguments")
        return collected

    def _object(self, value: dict[str, Any], schema: Schema, at: Trail) -> dict[str, Any]:
        known = as_object(schema.get("properties")) or {}
        more = schema.get("additionalProperties")
        return {key: self.read(item, known.get(key, more), (at, str(key))) for key, item in value.items()}


def _names_of(value: Any, kind: type[Enum]) -> Any:
    """Name a member of this class, or of the original of which only the names are known."""
    if not isinstance(value, Enum) or type(value).__qualname__ != kind.__qualname__:
        return value
    try:
        names = write_enum(value, None)["$enum"][1:]
    except Unwritable:
        return value
    return names if issubclass(kind, Flag) else names[0]


def _is_of(value: Any, schema: Schema) -> bool:
    """Whether a value is of the JSON type that a schema names, if it names one."""
    said: object = schema.get("type")
    words = _WORDS.get(cast("type[object]", type(value)), frozenset())
    return said is None or any(word in words for word in as_array(said) or [said])


def _has_format(schema: object) -> bool:
    node = as_object(schema)
    if node is None:
        return any(map(_has_format, as_array(schema) or ()))
    return "format" in node or any(map(_has_format, node.values()))


def _wanted(schema: Schema) -> str:
    form = str(schema.get("format"))
    if "anyOf" in schema:
        return " or ".join(map(_wanted, schema["anyOf"]))
    if form == "flags":
        return "a list of " + ", ".join(_choices(schema))
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    if form in FORMATS:
        return FORMATS[form].form
    if "prefixItems" in schema:
        return f"an array of {len(schema['prefixItems'])}"
    return str(schema.get("type", "anything"))
