"""Describe the REST API as an OpenAPI 3.1 document, from the declarations that serve it. Asks no store."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final, TypeAlias, cast

import msgspec

from fairlane.model.access import Role
from fairlane.web.declare import Body, Endpoint
from fairlane.web.locations import API
from fairlane.web.problem import MEDIA_TYPE, TITLES, ProblemReply

Json: TypeAlias = dict[str, Any]

OPENAPI: Final = "3.1.0"

_REF: Final = "#/components/schemas/{name}"
_CONVERTER: Final = re.compile(r":\w+}")
"""Behind a field of a path: how the router reads it."""

_PROBLEMS: Final = tuple(status for status in TITLES if status not in {405, 500})
"""What a request of any endpoint may be answered with, besides what it is for."""

_ABOUT: Final = """\
Everything is JSON. An error is `application/problem+json` with a stable `code`, and every bad field at once.
Lists are paged by `cursor`: send that of the last page, with the same filters. Durations are in seconds,
times have an offset. What looks secret is `[redacted]`. What belongs to another tenant answers as if it did
not exist.
"""


def document(endpoints: Iterable[Endpoint], prefix: str = "") -> Json:
    """Return the document of these endpoints; `prefix` is where the application is mounted."""
    known = list(endpoints)
    types = [kind for one in known for kind in _types(one)]
    _, components = msgspec.json.schema_components([*types, ProblemReply], ref_template=_REF)
    paths: dict[str, Json] = {}
    for one in known:
        paths.setdefault(_CONVERTER.sub("}", one.path), {})[one.method.lower()] = _operation(one)
    problem = {"description": "What went wrong.", "content": _content(MEDIA_TYPE, _schema(ProblemReply))}
    cleaned: Json = _clean(
        {
            "openapi": OPENAPI,
            "info": {"title": "Fairlane", "version": version("fairlane"), "description": _ABOUT},
            "servers": [{"url": prefix + API}],
            "security": [{"token": []}, {"password": []}],
            "paths": paths,
            "components": {
                "schemas": components,
                "responses": {"Problem": problem},
                "securitySchemes": {
                    "token": {"type": "http", "scheme": "bearer"},
                    "password": {"type": "http", "scheme": "basic"},
                },
            },
        }
    )
    return cleaned


def _types(endpoint: Endpoint) -> list[Any]:
    named = [*endpoint.fields.values(), endpoint.query, endpoint.body, endpoint.reply]
    return [kind for kind in named if kind is not None]


def _schema(kind: Any) -> Json:
    ((schema,), _) = msgspec.json.schema_components([kind], ref_template=_REF)
    return schema


def _operation(endpoint: Endpoint) -> Json:
    operation: Json = {
        "operationId": endpoint.name,
        "tags": [endpoint.name.partition(".")[0]],
        "summary": endpoint.summary,
        "description": f"{endpoint.about}\n\n{access_of(endpoint)}".strip(),
        "parameters": [*_in_path(endpoint), *_in_query(endpoint.query)],
        "responses": _responses(endpoint),
    }
    if endpoint.body is not None:
        required = any(field.required for field in msgspec.structs.fields(endpoint.body))
        content = _content("application/json", _schema(endpoint.body))
        operation["requestBody"] = {"required": required, "content": content}
    if endpoint.takes:
        content = _content(endpoint.takes, {"type": "string", "format": "binary"})
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def access_of(endpoint: Endpoint) -> str:
    """Return who may use an endpoint, as a sentence."""
    least = endpoint.least
    who = f"role {least.value}" if isinstance(least, Role) else f"the role that `{least}` says"
    scope = "" if endpoint.tenants == "own" else ", and no tenant"
    return f"Needs {who}{scope}."


def _in_path(endpoint: Endpoint) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _schema(kind)}
        for name, kind in endpoint.fields.items()
    ]


def _in_query(kind: type[Body] | None) -> list[Json]:
    return [] if kind is None else [_parameter(field) for field in msgspec.structs.fields(kind)]


def _parameter(field: msgspec.structs.FieldInfo) -> Json:
    schema = _without_null(_schema(field.type))
    about = schema.pop("description", "")
    if isinstance(field.default, str | int | float) and field.default != "":
        schema["default"] = field.default
    found: Json = {"name": field.encode_name, "in": "query", "required": field.required, "schema": schema}
    return {**found, "description": about} if about else found


def _without_null(schema: Json) -> Json:
    """Return a schema without null: a query leaves out what it does not say."""
    either = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(either) != 1:
        return schema if not either else {**schema, "anyOf": either}
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    return {**rest, **either[0]}


def _responses(endpoint: Endpoint) -> Json:
    problems = {str(status): {"$ref": "#/components/responses/Problem"} for status in _PROBLEMS}
    good = {"description": "Done.", "content": _content(endpoint.produces, _reply(endpoint))}
    return {str(endpoint.status): good, **problems}


def _reply(endpoint: Endpoint) -> Json:
    if endpoint.produces != "application/json":
        return {"type": "string"}
    return _schema(endpoint.reply)


def _content(media_type: str, schema: Json) -> Json:
    return {media_type: {"schema": schema}}


def _clean(value: Any) -> Any:
    """Return a copy whose descriptions are not indented."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return {
            name: inspect.cleandoc(one) if name == "description" and isinstance(one, str) else _clean(one)
            for name, one in fields.items()
        }
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        return [_clean(item) for item in items]
    return value
