"""The published vectors and schema say what the code does, byte for byte (M12)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlane.model.payload.encoding import (
    ENVELOPE,
    Undecodable,
    Unencodable,
    decode_arguments,
    decode_result,
    encode_arguments,
    encode_result,
    fingerprint,
)
from tests.model.payload.payload_values import ENUMS, NAMES, portrait

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
VECTORS = json.loads((REFERENCE / "payload-vectors.json").read_text("utf-8"))
SCHEMA = json.loads((REFERENCE / "payload.schema.json").read_text("utf-8"))
DOCUMENT = (REFERENCE / "payload.md").read_text("utf-8")

TYPES: dict[str, Any] = {
    "null": type(None),
    "boolean": bool,
    "string": str,
    "array": list,
    "object": dict,
}


def vectors(kind: str) -> list[Any]:
    """Return the vectors of one kind, named for pytest."""
    return [pytest.param(vector, id=vector.get("name") or vector["python"]) for vector in VECTORS[kind]]


def meant(vector: dict[str, str]) -> Any:
    """Return the value that a vector describes."""
    return eval(vector["python"], dict(NAMES))  # noqa: S307 (a file of this repository)


def is_of(value: Any, kind: str) -> bool:
    """Say whether a JSON value is of a type of the schema language."""
    if kind in {"integer", "number"}:
        return type(value) is int or (kind == "number" and type(value) is float)
    return type(value) is TYPES[kind]


def fits(value: Any, rule: dict[str, Any]) -> bool:
    """Judge a value by the part of the schema language that our schema uses."""
    left = set(rule) - {"description", "title", "$schema", "$defs"}
    checks: dict[str, Callable[[Any], bool]] = {
        "$ref": lambda ref: fits(value, SCHEMA["$defs"][ref.removeprefix("#/$defs/")]),
        "oneOf": lambda rules: sum(fits(value, each) for each in rules) == 1,
        "anyOf": lambda rules: any(fits(value, each) for each in rules),
        "const": lambda const: type(value) is type(const) and value == const,
        "enum": lambda allowed: type(value) is int and value in allowed,
        "type": lambda kinds: any(
            is_of(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)
        ),
        "pattern": lambda pattern: type(value) is str and re.search(pattern, value) is not None,
        "minLength": lambda least: len(value) >= least,
        "minItems": lambda least: len(value) >= least,
        "items": lambda each: all(fits(item, each) for item in value),
        "uniqueItems": lambda _: len({json.dumps(item) for item in value}) == len(value),
        "required": lambda names: set(names) <= set(value),
        "properties": lambda parts: all(fits(value[name], parts[name]) for name in parts if name in value),
        "propertyNames": lambda each: all(fits(name, each) for name in value),
        "additionalProperties": lambda each: all(
            each is not False and fits(value[name], each)
            for name in value
            if name not in rule.get("properties", {})
        ),
    }
    assert left <= set(checks), "the schema uses a word that this judge does not know"
    kind = rule.get("type")
    if kind is not None and not checks["type"](kind):
        return False
    return all(checks[word](rule[word]) for word in left)


def fits_schema(wire: str) -> bool:
    """Judge a text by the whole schema."""
    try:
        return fits(json.loads(wire), SCHEMA)
    except json.JSONDecodeError:
        return False


def test_the_vectors_are_of_this_envelope() -> None:
    """A new envelope needs new vectors."""
    assert VECTORS["envelope"] == ENVELOPE


@pytest.mark.parametrize("vector", vectors("accepted"))
def test_arguments_are_encoded_and_decoded_as_published(vector: Any) -> None:
    """Byte for byte, and back."""
    value = meant(vector)
    assert encode_arguments(value, enums=ENUMS).data.decode() == vector["wire"]
    assert portrait(decode_arguments(vector["wire"].encode(), enums=ENUMS)) == portrait(value)


@pytest.mark.parametrize("vector", vectors("results"))
def test_results_are_encoded_and_decoded_as_published(vector: Any) -> None:
    """Byte for byte, and back."""
    value = meant(vector)
    assert encode_result(value) == vector["wire"].encode()
    assert portrait(decode_result(vector["wire"].encode())) == portrait(value)


@pytest.mark.parametrize("vector", vectors("refused_values"))
def test_values_are_refused_as_published(vector: Any) -> None:
    """With the published path and message."""
    with pytest.raises(Unencodable) as refusal:
        encode_arguments(meant(vector))
    (problem,) = refusal.value.problems
    assert (problem.field, problem.message) == (vector["field"], vector["message"])


@pytest.mark.parametrize("vector", vectors("refused_wires"))
def test_texts_are_refused_as_published(vector: Any) -> None:
    """With the published reason."""
    with pytest.raises(Undecodable) as refusal:
        decode_arguments(vector["wire"].encode(), enums=ENUMS)
    assert str(refusal.value) == vector["why"]


@pytest.mark.parametrize("vector", vectors("fingerprints"))
def test_fingerprints_are_as_published(vector: Any) -> None:
    """They are stored, and so must never change."""
    assert fingerprint(vector["task"], meant(vector)).hex() == vector["hex"]


@pytest.mark.parametrize("vector", [*vectors("accepted"), *vectors("results")])
def test_every_accepted_vector_fits_the_schema(vector: Any) -> None:
    """A reader in another language may check with it."""
    assert fits_schema(vector["wire"])


@pytest.mark.parametrize("vector", vectors("refused_wires"))
def test_the_schema_refuses_what_it_says_it_refuses(vector: Any) -> None:
    """The rest depends on calendars, zones, classes or number sizes."""
    assert fits_schema(vector["wire"]) is not vector["schema_refuses"]


def test_every_tag_has_a_vector_and_a_line_in_the_document() -> None:
    """Nothing on the wire is unpublished."""
    tags = {
        name
        for rule in SCHEMA["$defs"].values()
        for name in rule.get("properties", {})
        if name.startswith("$")
    }
    assert len(tags) == 12
    accepted = "".join(vector["wire"] for vector in VECTORS["accepted"])
    for tag in tags:
        assert f'{{"{tag}":' in accepted
        assert f'{{"{tag}":' in DOCUMENT


@pytest.mark.parametrize("example", re.findall(r'`(\{"\$.*?\})`', DOCUMENT))
def test_the_documents_examples_are_right(example: Any) -> None:
    """Each form in the table reads, or is the one the text says is refused."""
    data = f'{{"v":1,"arguments":{{"x":{example}}}}}'.encode()
    if "20260701" in example:
        with pytest.raises(Undecodable):
            decode_arguments(data, enums=ENUMS)
    else:
        assert encode_arguments(decode_arguments(data, enums=ENUMS)).data == data
