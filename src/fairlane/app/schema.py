"""What a handler's arguments may be, as JSON Schema: their names, and their types where JSON has them.

Values that JSON has no type for (datetime, Decimal, Enum, classes) are not described: they are stored tagged.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from inspect import Parameter
from typing import Any, Final, Literal, Union, cast

from fairlane.app.checks import Sheet, kind_of
from fairlane.app.config.policy_kinds import nearest
from fairlane.app.handler import Handler

_PLAIN: Final[Mapping[Any, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    list: "array",
    dict: "object",
}
_FITS: Final[Mapping[type[object], frozenset[str]]] = {
    int: frozenset({"integer", "number"}),
    **{kind: frozenset({word}) for kind, word in _PLAIN.items() if kind is not int},
}


def schema_of(handler: Handler) -> dict[str, Any]:
    """Describe the arguments of a handler.

    >>> def send(to: str, pages: int = 1, day: "date | None" = None) -> None: ...
    >>> schema_of(Handler(send, "send"))["properties"]
    {'to': {'type': 'string'}, 'pages': {'type': 'integer'}, 'day': {}}
    """
    parameters = handler.signature.parameters
    hints = handler.argument_hints
    return {
        "type": "object",
        "properties": {name: _described(hints.get(name)) for name in parameters},
        "required": [name for name, one in parameters.items() if one.default is Parameter.empty],
        "additionalProperties": False,
    }


def _described(hint: Any) -> dict[str, Any]:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in {Union, types.UnionType}:
        several = [_described(one) for one in inner]
        return {"anyOf": several} if all(several) else {}
    if origin is Literal:
        return {"enum": list(inner)}
    if origin is list and inner:
        return {"type": "array", "items": _described(inner[0])}
    word = _PLAIN.get(origin or hint) if hint is not None else None  # not resolved: it may be anything
    return {"type": word} if word else {}


def check_arguments(sheet: Sheet, arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Note every argument that is missing, not known, or of another type than the schema says.

    >>> sheet = Sheet(0)
    >>> schema = {"properties": {"to": {"type": "string"}}, "required": ["to"], "additionalProperties": False}
    >>> check_arguments(sheet, {"too": "ada"}, schema)
    >>> [(problem.field, problem.message) for problem in sheet.problems]
    [('arguments.to', 'is missing'), ('arguments.too', "is no parameter of the task; did you mean 'to'?")]
    """
    properties = cast("Mapping[str, Any]", schema.get("properties", {}))
    for name in cast("list[str]", schema.get("required", [])):
        if name not in arguments:
            sheet.add(f"arguments.{name}", "is missing", "the task needs it", "arguments")
    for name, value in arguments.items():
        if name in properties:
            _check(sheet, f"arguments.{name}", value, properties[name])
        elif schema.get("additionalProperties") is False:
            message = f"is no parameter of the task{nearest(name, list(properties))}"
            sheet.add(f"arguments.{name}", message, f"it has: {', '.join(properties) or 'none'}", "arguments")


def _check(sheet: Sheet, path: str, value: Any, schema: Mapping[str, Any]) -> None:
    if not _fits(value, schema):
        sheet.add(path, f"is of type {kind_of(value)}", f"give {_wanted(schema)}", "arguments")
    elif type(value) is list and "items" in schema:
        for at, item in enumerate(value):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            _check(sheet, f"{path}[{at}]", item, schema["items"])


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    if "anyOf" in schema:
        return any(_fits(value, one) for one in schema["anyOf"])
    if "enum" in schema:
        return any(type(value) is type(one) and value == one for one in schema["enum"])
    kind = cast("type[object]", type(value))
    return "type" not in schema or schema["type"] in _FITS.get(kind, frozenset())


def _wanted(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_wanted(one) for one in schema["anyOf"])
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    return str(schema.get("type", "anything"))
