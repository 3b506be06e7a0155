"""What a handler's arguments may be, as JSON Schema, for those who call it by its name (decision 0042)."""

from __future__ import annotations

from inspect import Parameter
from typing import Any

from fairlane.app.handler import Handler
from fairlane.app.shapes import ANYTHING


def schema_of(handler: Handler) -> dict[str, Any]:
    """Describe the arguments of a handler; of what is not understood, only the name.

    >>> def send(to: str, pages: int = 1, days: "list[date]" = (), at: object = None) -> None: ...
    >>> schema_of(Handler(send, "send"))["properties"]
    {'to': {'type': 'string'}, 'pages': {'type': 'integer'}, 'days': {}, 'at': {}}
    """
    parameters = handler.signature.parameters
    shapes = handler.shapes
    return {
        "type": "object",
        "properties": {name: shapes.get(name, ANYTHING).described for name in parameters},
        "required": [name for name, one in parameters.items() if one.default is Parameter.empty],
        "additionalProperties": False,
    }
