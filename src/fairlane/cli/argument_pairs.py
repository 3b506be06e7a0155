"""Parse arguments from the command line: KEY=VALUE pairs typed by a task's schema, or a JSON object."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import click
import msgspec

from fairlane.app.arguments.from_json import Enums, Schema, is_fitting
from fairlane.app.enqueue.by_name import FoundTask

Arguments: TypeAlias = dict[str, Any]

_TEXT: Final = {"type": "string"}
_WIDTH: Final = 40


def arguments_of(pairs: Iterable[str], named: FoundTask | None) -> Arguments:
    """Parse all pairs; a name that is given twice is an error. Without a task nothing is typed."""
    arguments: Arguments = {}
    enums: Enums = {} if named is None else named.task.handler.argument_enums
    properties: Schema = {} if named is None else named.schema.get("properties", {})
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator or not name.isidentifier():
            message = f"{pair[:_WIDTH]!r} is not KEY=VALUE"
            raise click.UsageError(message)
        if name in arguments:
            message = f"{name} is given twice"
            raise click.UsageError(message)
        arguments[name] = _value(text, properties.get(name, {}), enums)
    return arguments


def _value(text: str, schema: Schema, enums: Enums) -> Any:
    """Parse the value of a pair: as JSON, unless only the text fits the parameter.

    >>> whole, number, word = {"type": "integer"}, {"type": "string", "format": "decimal"}, {"type": "string"}
    >>> _value("3", whole, {}), _value("1.20", number, {}), _value("17", word, {}), _value("+49", {}, {})
    (3, '1.20', '17', '+49')
    """
    if schema == _TEXT:
        return text
    try:
        value = msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return text
    except RecursionError:
        raise click.UsageError(f"{text[:_WIDTH]!r} is nested too deeply") from None
    return text if not is_fitting(value, schema, enums) and is_fitting(text, schema, enums) else value


def object_of(text: str, where: str) -> Arguments:
    """Parse a JSON object of arguments; `where` names the text in an error."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        message = f"{where} is not a JSON object of arguments: {error}"
        raise click.UsageError(message) from None
    except RecursionError:
        raise click.UsageError(f"{where} is nested too deeply") from None
    except UnicodeEncodeError:  # in some locales Python lets undecodable bytes through
        raise click.UsageError(f"{where} is not valid UTF-8") from None
