"""Read what a request sends into the declared types; all bad fields are named at once. Asks no store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar, cast, get_args, get_origin

import msgspec
from starlette.datastructures import QueryParams

from fairlane.app.did_you_mean import did_you_mean
from fairlane.model.errors import Problem
from fairlane.web.declare import Body

B = TypeVar("B", bound=Body)

_LISTS: Final = (list, tuple, set, frozenset, Sequence)


class BadRequest(Exception):  # noqa: N818 (it is what HTTP calls it)
    """What was sent cannot be read. `problems` names every bad field."""

    def __init__(self, problems: Sequence[Problem], *, status: int = 422) -> None:
        super().__init__("; ".join(problem.text for problem in problems))
        self.problems = tuple(problems)
        self.status = status


def bad_field(field: str, message: str, hint: str, code: str = "invalid") -> BadRequest:
    """Return the error of one bad field."""
    return BadRequest([Problem(0, field, message, hint, code)])


def read_json(data: bytes, kind: type[B]) -> B:
    """Read a JSON object; no data is an empty object."""
    try:
        value = msgspec.json.decode(data or b"{}")
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRequest(
            [Problem(0, "body", f"is no JSON: {error}", "send a JSON object")], status=400
        ) from None
    if not isinstance(value, dict):
        raise BadRequest([Problem(0, "body", "is no JSON object", "send a JSON object")], status=400)
    return read_fields(cast("dict[str, Any]", value), kind, is_text=False)


def read_query(params: QueryParams, kind: type[B]) -> B:
    """Read the query of a URL; a field that takes several values may be given several times."""
    lists = {field.encode_name for field in msgspec.structs.fields(kind) if _takes_several(field.type)}
    values = {name: params.getlist(name) if name in lists else params.getlist(name)[-1] for name in params}
    return read_fields(values, kind, is_text=True)


def read_form(pairs: Sequence[tuple[str, str]], kind: type[B]) -> B:
    """Read what a form sends for the body of an endpoint.

    What a person left blank counts as not sent. A field that takes several values may be sent several times,
    and one that takes an object is sent as JSON, or member by member as `field.member`.
    """
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    objects = {name for name, field in fields.items() if get_origin(field.type) is Mapping}
    values: dict[str, Any] = {}
    for name in dict.fromkeys(name for name, _ in pairs):
        whole, dot, member = name.partition(".")
        if dot and whole in objects:
            values.setdefault(whole, {})[member] = next(text for other, text in pairs[::-1] if other == name)
            continue
        texts = [text for other, text in pairs if other == name and text]
        field = fields.get(name)
        if field is None or texts:
            values[name] = texts if field is not None and _takes_several(field.type) else "".join(texts[-1:])
            if field is not None and isinstance(values[name], str):
                values[name] = _of_form(values[name], field.type)
    return read_fields(values, kind, is_text=True)


def _of_form(text: str, kind: Any) -> Any:
    """Return a text as it is if the type takes one, else what it is as JSON."""
    try:
        msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        with suppress(msgspec.DecodeError, RecursionError):
            return msgspec.json.decode(text)
    return text


def read_path(texts: Mapping[str, str], types: Mapping[str, Any]) -> dict[str, Any]:
    """Read what stands in a path."""
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for name, kind in types.items():
        try:
            values[name] = msgspec.convert(texts[name], kind, strict=False)
        except msgspec.ValidationError as error:
            problems.append(_problem(name, error))
    if problems:
        raise BadRequest(problems)
    return values


def read_fields(values: Mapping[str, Any], kind: type[B], *, is_text: bool) -> B:
    """Read named values; `is_text` if numbers and flags come as text. Names every field that is wrong."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    problems = [_unknown(name, list(fields)) for name in values if name not in fields]
    read: dict[str, Any] = {}
    for name, field in fields.items():
        if name not in values:
            if field.required:
                problems.append(Problem(0, name, "is missing", "send it", "required"))
            continue
        try:
            read[field.name] = msgspec.convert(values[name], field.type, strict=not is_text)
        except msgspec.ValidationError as error:
            problems.append(_problem(name, error))
    if problems:
        raise BadRequest(problems)
    try:
        return kind(**read)
    except ValueError as error:
        raise bad_field("body", str(error), "see the documentation of this endpoint") from None


def _takes_several(kind: Any) -> bool:
    kinds = get_args(kind) or (kind,)
    return get_origin(kind) in _LISTS or any(get_origin(one) in _LISTS for one in kinds)


def _unknown(name: str, known: list[str]) -> Problem:
    hint = f"known are: {', '.join(known) or 'none'}"
    return Problem(0, name[:60], f"is not known{did_you_mean(name, known)}", hint, "unknown")


def _problem(name: str, error: msgspec.ValidationError) -> Problem:
    message, _, path = str(error).partition(" - at `$")
    field = name + path.rstrip("`")
    return Problem(
        0, field, message[:1].lower() + message[1:], "see the documentation of this endpoint", "type"
    )
