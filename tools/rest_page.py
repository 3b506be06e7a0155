"""Write the reference page of the REST API from its OpenAPI document. Knows no endpoint.

`make rest` writes docs/reference/rest.md with it; `--check` says whether the page is as it would be written,
and a test compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fairlane.web.api import GROUPS
from fairlane.web.locations import API
from fairlane.web.openapi import document
from tools.architecture import ROOT

PAGE: Final = ROOT / "docs" / "reference" / "rest.md"

HEAD: Final = f"""\
# REST API

Generated from the declarations in `src/fairlane/web/api/` by `make rest`; do not edit by hand.

All paths are below `{API}`, behind the prefix at which the application is mounted. `GET {API}/openapi.json`
returns the same as an OpenAPI 3.1 document, of what is there for the caller.

- **Who may.** Each endpoint needs a role: viewer, operator, manager or admin, each of which may do what those
  before it may. Without a known caller the answer is 401, with too low a role 403. What belongs to another
  tenant is answered as what does not exist: 404, with the same body. *No tenant* means that the endpoint is
  not there for callers that are bound to one.
- **Errors** are `application/problem+json`: `code` is stable, for programs; `detail` and `hint` are for
  people; `field` is the first bad field and `problems` has all of them; `position` says at which character a
  query cannot be understood; `request_id` is in the header `X-Request-Id` and in the server's log, too.
- **Lists** are paged by `cursor`: send that of the last page, with the same filters. `null` is the end; a
  page with a cursor may be short. `total` is exact if at most 10,000 must be looked at, else an estimate.
- **Changes** take a `note`, which is audited with who asked.
- **Times** have an offset, durations are in seconds. What looks secret is `[redacted]`.
"""

NAMES: Final = (ROOT / "tools" / "rest_names.md").read_text(encoding="utf-8")
"""What others call the same; written by hand."""


def page() -> str:
    """Return the whole page."""
    described = document(one for group in GROUPS for one in group)
    schemas: Mapping[str, Any] = described["components"]["schemas"]
    lines = [HEAD]
    about: dict[str, str] = {}
    for group in GROUPS:
        about.setdefault(group.noun, group.about)
    nouns: dict[str, list[str]] = {}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            (noun,) = operation["tags"]
            nouns.setdefault(noun, []).extend(_endpoint(method.upper(), path, operation))
    for noun, found in nouns.items():
        lines += [f"## {noun.capitalize()}", "", about.get(noun, ""), "", *found]
    lines += [NAMES, "## Types", ""]
    for name, schema in sorted(schemas.items()):
        lines += _type(name, schema)
    return "\n".join(lines).rstrip() + "\n"


def _endpoint(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield from [f"### {operation['operationId']}", "", f"`{method} {path}`", ""]
    yield from [operation["summary"], "", operation["description"], ""]
    rows = [
        f"| `{one['name']}` | {one['in']} | {_kind(one['schema'])} | {_said(one)} |"
        for one in operation["parameters"]
    ]
    if rows:
        yield from ["| parameter | in | type | |", "|---|---|---|---|", *rows, ""]
    if "requestBody" in operation:
        yield from [f"Takes {_what(operation['requestBody'])}.", ""]
    status, good = next(iter(operation["responses"].items()))
    yield from [f"Answers {status} with {_what(good)}.", ""]


def _what(value: Mapping[str, Any]) -> str:
    """Return what a request or an answer has: a type, or a kind of file."""
    media_type = next(iter(value["content"]))
    return _kind(_content(value)) if media_type == "application/json" else f"`{media_type}`"


def _content(value: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(iter(value["content"].values()))["schema"]
    return found


def _type(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield from [f"### {name}", "", schema.get("description", ""), ""]
    required = set(schema.get("required", ()))
    rows = [
        f"| `{field}` | {_kind(one)} | {_said({**one, 'required': field in required})} |"
        for field, one in schema.get("properties", {}).items()
    ]
    if rows:
        yield from ["| field | type | |", "|---|---|---|", *rows, ""]
    elif "enum" in schema:
        yield from [", ".join(f"`{one}`" for one in schema["enum"]) + ".", ""]


def _kind(schema: Mapping[str, Any]) -> str:
    """Return the type of a value, in few words."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        return f"object of {_kind(inner)}" if isinstance(inner, Mapping) and inner else "object"
    kind = str(schema.get("format") or schema.get("type") or "any JSON")
    bounds = [
        f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema
    ]
    return " ".join([kind, *bounds])


def _said(value: Mapping[str, Any]) -> str:
    """Return what is said about a field, on one line of a table."""
    parts = ["Required."] if value.get("required") else []
    if "description" in value:
        parts.append(" ".join(str(value["description"]).split()))
    default = value.get("default", value.get("schema", {}).get("default"))
    if default not in (None, "", [], {}):
        parts.append(f"Default: `{default}`.")
    return " ".join(parts).replace("|", "\\|")


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else f"{PAGE.name} is old: run `make rest`")
    PAGE.write_text(page(), encoding="utf-8")
