"""A value that matches its hint is accepted, and arrives in the handler as an equal value."""

from __future__ import annotations

import types
import typing
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, Union, cast
from uuid import UUID

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from fairlane import Fairlane, InvalidJob, Problem
from fairlane.app.arguments.from_json import enums_in, read_arguments
from fairlane.app.arguments.type_hints import shape_of
from fairlane.app.enqueue.checks import ProblemList
from fairlane.app.task.handler import Handler, schema_of
from fairlane.model.payload.encoding import decode_arguments, encode_arguments
from fairlane.worker.attempts.arguments import read_arguments as handed


class Colour(Enum):
    """What a task names."""

    RED = "r"
    GREEN = "g"


LEAVES: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=5),
    int: st.integers(-(2**40), 2**40),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    type(None): st.none(),
    bytes: st.binary(max_size=5),
    datetime: st.datetimes(timezones=st.just(UTC)).map(lambda one: one.replace(fold=0)),
    date: st.dates(),
    time: st.times().map(lambda one: one.replace(fold=0)),  # which no text has a form for
    timedelta: st.timedeltas(timedelta(days=-999), timedelta(days=999)),
    Decimal: st.decimals(allow_nan=False, allow_infinity=False, places=2),
    UUID: st.uuids(),
    Colour: st.sampled_from(Colour),
    Literal["fast", 3]: st.sampled_from(["fast", 3]),
}
HASHABLE = [str, int, bytes, date, Decimal, UUID, Colour]


def _wider(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(lambda one: cast("Any", list)[one], inner),
        st.builds(lambda one: cast("Any", dict)[str, one], inner),
        st.builds(lambda one: cast("Any", tuple)[one, ...], inner),
        st.builds(lambda one, two: cast("Any", tuple)[one, two], inner, inner),
        st.builds(lambda one, two: Union[one, two], inner, inner),  # noqa: UP007 (of hints that are drawn)
        st.sampled_from([cast("Any", set)[one] for one in HASHABLE]),
        st.sampled_from([cast("Any", frozenset)[one] for one in HASHABLE]),
    )


HINTS = st.recursive(st.sampled_from(list(LEAVES)), _wider, max_leaves=4)


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Draw what a hint allows."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in LEAVES:
        return LEAVES[hint]
    if origin in {Union, types.UnionType}:
        return st.one_of(*map(values_of, parts))
    if origin is dict:
        return st.dictionaries(st.text(max_size=3), values_of(parts[1]), max_size=3)
    if origin is tuple and parts[-1] is not ...:
        return st.tuples(*map(values_of, parts))
    items = st.lists(values_of(parts[0]), max_size=3, unique=origin in {set, frozenset})
    return items.map(origin)


def fits(hint: Any, value: Any) -> bool:
    """Read a hint in the simplest way, for exact types."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in {Union, types.UnionType}:
        return any(fits(one, value) for one in parts)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in parts)
    if origin is None:
        wider = {float: (float, int), type(None): (type(None),)}
        return isinstance(value, wider.get(hint, hint))
    if type(value) is not origin:
        return False
    if origin is dict:
        return all(fits(parts[1], one) for one in value.values())
    if origin is tuple and parts[-1] is not ...:
        return len(value) == len(parts) and all(map(fits, parts, value))
    return all(fits(parts[0], one) for one in value)


def handler_of(hint: Any) -> Any:
    """Make a handler with one parameter of this hint."""

    def handle(value: Any) -> None: ...

    handle.__annotations__ = {"value": hint}
    return handle


PAIRS = HINTS.flatmap(lambda hint: st.tuples(st.just(hint), values_of(hint)))
ANY_VALUE = HINTS.flatmap(values_of)


@given(PAIRS)
def test_whatever_fits_is_accepted_and_arrives_equal(pair: tuple[Any, Any]) -> None:
    """From the call through the payload to the handler, of the same type."""
    hint, value = pair
    assert fits(hint, value)
    app = Fairlane(payload={"sensitive": "allow"}, config={})
    task = app.task(name="handle")(handler_of(hint)).using(tenant="acme")
    (job,) = app.client.new_jobs([task.bind(value)])
    arrived = handed(job, task.declared)["value"]  # type: ignore[arg-type]
    assert (arrived, type(arrived)) == (value, type(value))


@given(HINTS, ANY_VALUE)
def test_a_value_is_refused_exactly_if_it_does_not_fit(hint: Any, value: Any) -> None:
    """By a reading of hints that knows nothing of shapes; a refusal names the argument."""
    app = Fairlane(payload={"sensitive": "allow"}, config={})
    task = app.task(name="handle")(handler_of(hint)).using(tenant="acme")
    enums = Handler(handler_of(Colour), "x").argument_enums
    problems: Sequence[Problem] = ()
    task.declared.handler.argument_enums = enums
    try:
        app.client.new_jobs([task.bind(value)])
    except InvalidJob as error:
        problems = error.problems
    assert (not problems) == fits(hint, value) == shape_of(hint).fits(value)
    assert all(one.field.startswith("arguments.value") and one.code == "arguments" for one in problems)


# ── by name ──────────────────────────────────────────────────────────────────


def plain(value: Any) -> Any:
    """Write a value as somebody would in JSON."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in value]
    if type(value) in {str, int, float, bool, type(None)}:
        return value
    return msgspec.to_builtins(value)


CLEAR = st.recursive(
    st.sampled_from([one for one in LEAVES if one is not type(None)]),
    lambda inner: st.one_of(
        st.builds(lambda one: cast("Any", list)[one], inner),
        st.builds(lambda one: cast("Any", dict)[str, one], inner),
        st.builds(lambda one: cast("Any", tuple)[one, ...], inner),
        st.builds(lambda one, two: cast("Any", tuple)[one, two], inner, inner),
        st.builds(lambda one: one | None, inner),
        st.sampled_from([cast("Any", set)[one] for one in HASHABLE]),
    ),
    max_leaves=4,
)
"""Hints of which a JSON value can be meant in one way only."""


@given(CLEAR.flatmap(lambda hint: st.tuples(st.just(hint), values_of(hint))), st.booleans())
def test_json_by_name_becomes_what_python_would_pass(pair: tuple[Any, Any], is_plain: bool) -> None:
    """Through a published schema, without the handler; a value that has its type already stays as it is."""
    hint, value = pair
    handler = Handler(handler_of(hint), "x")
    schema = msgspec.json.decode(msgspec.json.encode(schema_of(handler)))
    enums = enums_in(schema)
    problems = ProblemList(0)
    read = read_arguments(problems, {"value": plain(value) if is_plain else value}, schema, enums)
    assert problems.found == []
    data = encode_arguments(read, enums=enums).data
    assert data == encode_arguments({"value": value}, enums=handler.argument_enums).data
    arrived = decode_arguments(data, enums=handler.argument_enums)["value"]
    assert (arrived, type(arrived)) == (value, type(value))
