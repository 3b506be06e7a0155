"""Convert arguments in plain JSON to the values that a published schema describes, or report what is wrong.

Values that have the right Python type already stay as they are. Knows no handler: the schema is all there is,
and Enum classes are made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum, Flag
from typing import Any, Final, TypeAlias, cast

from fairlane.app.arguments.json_formats import FORMATS, read_format
from fairlane.app.arguments.type_hints import NO_CHOICE, exact
from fairlane.app.did_you_mean import did_you_mean
from fairlane.app.enqueue.checks import ProblemList, kind_of
from fairlane.model.payload.enums import write_enum
from fairlane.model.payload.paths import Trail, path_of
from fairlane.model.payload.tagged import Unwritable, as_array, as_object
from fairlane.model.payload.writing import MAX_PROBLEMS

Schema: TypeAlias = Mapping[str, Any]
Enums: TypeAlias = Mapping[str, type[Enum]]

_JSON_TYPES: Final[Mapping[type[object], frozenset[str]]] = {
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
    problems: ProblemList, arguments: Mapping[str, Any], schema: Schema, enums: Enums
) -> dict[str, Any]:
    """Return the arguments as the schema types them; report those missing, unknown or of the wrong type.

    >>> problems = ProblemList(0)
    >>> schema = {"properties": {"day": {"type": "string", "format": "date"}}, "required": ["to"]}
    >>> read_arguments(problems, {"day": "2026-07-01"}, schema, {})
    {'day': datetime.date(2026, 7, 1)}
    >>> print(*problems.found)
    [0] arguments.to: is missing; the task needs it
    """
    properties = as_object(schema.get("properties")) or {}
    for name in as_array(schema.get("required")) or ():
        if name not in arguments:
            problems.add(f"arguments.{name}", "is missing", "the task needs it", "arguments")
    reader = _Reader(problems, enums)
    read: dict[str, Any] = {}
    for name, value in arguments.items():
        if name in properties:
            read[name] = reader.read(value, properties[name], ((None, "arguments"), name))
            continue
        read[name] = value
        if schema.get("additionalProperties") is False:
            message = f"is not a parameter of the task{did_you_mean(name, list(properties))}"
            problems.add(
                f"arguments.{name}", message, f"it has: {', '.join(properties) or 'none'}", "arguments"
            )
    return read


def is_fitting(value: Any, schema: Schema, enums: Enums) -> bool:
    """Whether a value matches a schema.

    >>> is_fitting("1.20", {"type": "string", "format": "decimal"}, {}), is_fitting("x", {"type": "null"}, {})
    (True, False)
    """
    problems = ProblemList(0)
    _Reader(problems, enums).read(value, schema, (None, "value"))
    return not problems.found


def enums_in(schema: object) -> dict[str, type[Enum]]:
    """Return a class for each Enum in a schema, with the members' names and nothing else of the original.

    Its members are stored like those of the original: by the names of class and member (S5).

    >>> colour = enums_in({"enum": ["RED"], "format": "enum", "title": "Colour"})["Colour"]
    >>> list(colour)
    [<Colour.RED: 'RED'>]
    """
    names: dict[str, dict[str, None]] = {}
    flags: set[str] = set()
    for one in _enum_schemas(schema):
        title = str(one["title"])
        names.setdefault(title, {}).update(dict.fromkeys(_choices(one)))  # a Literal lists only some
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
    """Return the member names that an Enum's schema allows."""
    node = as_object(schema.get("items")) or {} if schema["format"] == "flags" else schema
    return [str(name) for name in as_array(node.get("enum")) or ()]


def _enum_of(title: str, names: list[str], *, is_flag: bool) -> type[Enum]:
    make: Any = Flag if is_flag else Enum
    kind: type[Enum] = make(title, [(name, 1 << at if is_flag else name) for at, name in enumerate(names)])
    kind.__qualname__ = title
    return kind


class _Reader:
    """Reads the values of one call, and reports what does not fit."""

    def __init__(self, problems: ProblemList, enums: Enums) -> None:
        self._problems = problems
        self._enums = enums

    def read(self, value: Any, schema: Any, at: Trail) -> Any:
        """Return the value as the schema types it; one that does not fit is reported and kept as it is."""
        if not isinstance(schema, Mapping):
            return value
        node = cast("Schema", schema)
        form = node.get("format")
        if "anyOf" in node:
            return self._any(value, list(node["anyOf"]), at)
        if form in {"enum", "flags"}:
            return self._member(value, node, at)
        if "enum" in node:
            if not any(type(value) is type(one) and value == one for one in node["enum"]):
                self._report(at, NO_CHOICE, node)
            return value
        if form in FORMATS:
            return self._format(value, node, at)
        if node.get("type") == "array":
            return self._array(value, node, at)
        if not _is_of(value, node):
            self._report(at, f"is of type {kind_of(value)}", node)
        elif type(value) is dict:
            return self._object(cast("dict[str, Any]", value), node, at)
        return value

    def _report(self, at: Trail, message: str, schema: Schema) -> None:
        if len(self._problems.found) >= MAX_PROBLEMS:
            return
        self._problems.add(path_of(at), message, f"give {_wanted(schema)}", "arguments")

    def _any(self, value: Any, options: list[Schema], at: Trail) -> Any:
        """Return the value by the first option that fits; JSON's own types come before formats of text."""
        tried: list[tuple[Schema, ProblemList]] = []
        for option in sorted(options, key=_has_format):
            problems = ProblemList(self._problems.index)
            read = _Reader(problems, self._enums).read(value, option, at)
            if not problems.found:
                return read
            tried.append((option, problems))
        candidates = [problems for option, problems in tried if _is_of(value, option)]
        if len(candidates) == 1:
            self._problems.take(candidates[0].found)
        else:
            message = "cannot be read as any of these" if candidates else f"is of type {kind_of(value)}"
            self._report(at, message, {"anyOf": options})
        return value

    def _format(self, value: Any, schema: Schema, at: Trail) -> Any:
        name = str(schema["format"])
        try:
            return read_format(name, value)
        except ValueError:
            is_text = type(value) is str
            message = f"cannot be read as {name}" if is_text else f"is of type {kind_of(value)}"
            self._report(at, message, schema)
            return value

    def _member(self, value: Any, schema: Schema, at: Trail) -> Any:
        kind, allowed = self._enums.get(str(schema.get("title"))), _choices(schema)
        if kind is None:
            return value
        given = _names_of(value, kind)
        names = as_array(given) if issubclass(kind, Flag) else [given]
        if names is None or any(name not in allowed or name not in kind.__members__ for name in names):
            is_choice = type(given) in {str, list}
            self._report(at, NO_CHOICE if is_choice else f"is of type {kind_of(value)}", schema)
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
            self._report(at, f"is of type {kind_of(value)}", schema)
            return value
        items, first = list(value), as_array(schema.get("prefixItems"))
        if first is not None and len(first) != len(items):
            self._report(at, f"has {len(items)} item(s)", schema)
            return value
        each = [schema.get("items")] * len(items) if first is None else first
        before = len(self._problems.found)
        has_order = exact(value) in {list, tuple}
        read = [
            self.read(item, one, (at, index if has_order else ...))
            for index, (item, one) in enumerate(zip(items, each, strict=True))
        ]
        if make is None or len(self._problems.found) > before:
            return read
        return self._collected(make, read, at)

    def _collected(self, make: Callable[[Any], Any], items: list[Any], at: Trail) -> Any:
        try:
            collected = make(items)
        except TypeError:
            self._problems.add(
                path_of(at), "has an item that no set can hold", "give plain values", "arguments"
            )
            return items
        if len(collected) != len(items):
            self._problems.add(path_of(at), "has an item twice", "give each once", "arguments")
        return collected

    def _object(self, value: dict[str, Any], schema: Schema, at: Trail) -> dict[str, Any]:
        known = as_object(schema.get("properties")) or {}
        more = schema.get("additionalProperties")
        return {key: self.read(item, known.get(key, more), (at, str(key))) for key, item in value.items()}


def _names_of(value: Any, kind: type[Enum]) -> Any:
    """Return the member names of a value of this class, or of the original class of the same name."""
    if not isinstance(value, Enum) or type(value).__qualname__ != kind.__qualname__:
        return value
    try:
        names = write_enum(value, None)["$enum"][1:]
    except Unwritable:
        return value
    return names if issubclass(kind, Flag) else names[0]


def _is_of(value: Any, schema: Schema) -> bool:
    """Whether a value has the JSON type of a schema; True if the schema has none."""
    types: object = schema.get("type")
    own = _JSON_TYPES.get(cast("type[object]", type(value)), frozenset())
    return types is None or any(one in own for one in as_array(types) or [types])


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
