"""Read the arguments of a job from the texts of a form, as the task's published schema types them.

Text stays text where the schema allows it; what is then wrong is said by the enqueue itself. Asks no store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from fairlane.model.errors import Problem
from fairlane.web.reading import BadRequest

_WORDS: Final = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


def read_texts(texts: Mapping[str, str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return JSON values by name; what a form leaves empty is not given, except where text is required.

    >>> schema = {"properties": {"to": {"type": "string"}, "page": {"type": "integer"}}, "required": ["to"]}
    >>> read_texts({"to": "7", "page": "7"}, schema), read_texts({"to": "", "page": ""}, schema)
    ({'to': '7', 'page': 7}, {'to': ''})
    """
    properties = cast("Mapping[str, Any]", schema.get("properties", {}))
    required = cast("list[str]", schema.get("required", []))
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for name, text in texts.items():
        kinds = set(types_in(properties.get(name, {})))
        if not text and not (name in required and kinds <= {"string"}):
            continue
        try:
            values[name] = _value(text, kinds)
        except ValueError as error:
            problems.append(Problem(0, f"arguments.{name}", str(error), "write it as JSON", "arguments"))
    if problems:
        raise BadRequest(problems)
    return values


def types_in(schema: object) -> Iterator[str]:
    """Yield the JSON types that a schema allows; none if it allows all.

    >>> list(types_in({"anyOf": [{"type": "integer"}, {"type": "null"}]}))
    ['integer', 'null']
    """
    if not isinstance(schema, dict):
        return
    node = cast("dict[str, Any]", schema)
    kind = node.get("type")
    if isinstance(kind, str):
        yield kind
    elif isinstance(kind, list):
        yield from cast("list[str]", kind)
    for one in cast("list[Any]", node.get("anyOf", [])):
        yield from types_in(one)


def _value(text: str, kinds: set[str]) -> Any:
    """Return the value of a text: JSON, unless it can only be text."""
    if "boolean" in kinds and text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if kinds <= {"string", "null"} and kinds:
        return None if "null" in kinds and text == "null" else text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        if not kinds or "string" in kinds:
            return text
    message = f"is {text[:40]!r}, which is no {' or '.join(sorted(kinds - {'null'}))}"
    raise ValueError(message)
