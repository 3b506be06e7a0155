"""Turn the published schema of a task into the inputs of a form; `argument_texts` reads what comes back.

Asks no store.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from fairlane.model.payload.sensitive import redact
from fairlane.web.forms.argument_texts import types_in

InputKind: TypeAlias = Literal["text", "number", "json", "choice", "secret"]

_FLAGS: Final = ("true", "false")
_EXAMPLES: Final[Mapping[str, str]] = {
    "date-time": "as in 2026-11-19T08:00:00Z",
    "date": "as in 2026-11-19",
    "time": "as in 08:00:00",
}
_SHOWN: Final = "shown"


class ArgumentField(msgspec.Struct, frozen=True, kw_only=True):
    """One input: the argument's name, how it is typed in, and what the schema says of it in words.

    `choices` are the values of a closed list. `hint` is what a person should know before typing.
    """

    name: str
    kind: InputKind
    is_required: bool
    says: str
    choices: Sequence[str] = ()
    hint: str = ""


def argument_fields(schema: Mapping[str, Any], sensitive: Collection[str] = ()) -> Sequence[ArgumentField]:
    """Return an input for each argument, required ones first; `sensitive` are typed unseen.

    >>> schema = {"properties": {"page": {"type": "integer"}, "to": {"type": "string"}}, "required": ["to"]}
    >>> [(one.name, one.kind, one.is_required) for one in argument_fields(schema)]
    [('to', 'text', True), ('page', 'number', False)]
    """
    properties = cast("Mapping[str, Any]", schema.get("properties", {}))
    required = cast("Sequence[str]", schema.get("required", ()))
    fields = [
        _field(name, node, is_required=name in required, is_secret=_is_secret(name, sensitive))
        for name, node in properties.items()
    ]
    return sorted(fields, key=lambda one: not one.is_required)


def _field(name: str, schema: object, *, is_required: bool, is_secret: bool) -> ArgumentField:
    node = _without_null(schema)
    kinds = [kind for kind in dict.fromkeys(types_in(schema)) if kind != "null"]
    choices = _choices(node, kinds)
    says = str(node.get("format") or " or ".join(kinds) or "any JSON value")
    kind: InputKind = "json"
    if is_secret and set(kinds) <= {"string"}:
        kind = "secret"
    elif choices:
        kind, says = "choice", str(node.get("title") or "one of these")
    elif kinds == ["string"]:
        kind = "text"
    elif kinds and set(kinds) <= {"integer", "number"}:
        kind = "number"
    hint = "written as JSON" if kind == "json" else _EXAMPLES.get(says, "")
    return ArgumentField(name=name, kind=kind, is_required=is_required, says=says, choices=choices, hint=hint)


def _without_null(schema: object) -> Mapping[str, Any]:
    """Return what is allowed beside null, if that is one thing."""
    if not isinstance(schema, dict):
        return {}
    node = cast("Mapping[str, Any]", schema)
    others = [one for one in cast("list[Any]", node.get("anyOf", [])) if one != {"type": "null"}]
    return _without_null(others[0]) if len(others) == 1 else node


def _is_secret(name: str, sensitive: Collection[str]) -> bool:
    return bool(redact({name: _SHOWN}, names=sensitive)[name] != _SHOWN)


def _choices(node: Mapping[str, Any], kinds: Sequence[str]) -> Sequence[str]:
    if kinds == ["boolean"]:
        return _FLAGS
    listed: list[Any] = node.get("enum") or []
    return [one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in listed]
