"""Enum classes come from the application's type hints, never from stored names (S5)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, Flag, IntFlag
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ForwardRef,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    TypedDict,
    TypeVar,
    Union,
    cast,
)

import pytest

from fairlane.model.payload.encoding import (
    Undecodable,
    Unencodable,
    decode_arguments,
    decode_result,
    encode_arguments,
    encode_result,
    enums_of,
)
from tests.model.payload.payload_values import ENUMS, Colour, Level, Mode, Size

if TYPE_CHECKING:
    from tests.model.payload.payload_values import Colour as Missing

T = TypeVar("T")
Bound = TypeVar("Bound", bound=Colour)
OneOf = TypeVar("OneOf", Colour, Size)
Shade = NewType("Shade", Colour)


@dataclass
class Paint:
    """A record with an Enum in it, and one that contains itself."""

    colour: Colour
    under: Paint | None = None


@dataclass
class Box(Generic[T]):
    """A generic record."""

    content: T
    size: Size


class Order(TypedDict, total=False):
    """A typed dict."""

    colour: Colour


class Pair(NamedTuple):
    """A named tuple."""

    colour: Colour


@dataclass
class Half:
    """A record whose hints only a type checker can resolve."""

    missing: Missing


REACHED: list[tuple[Any, set[type[Enum]]]] = [
    (Colour, {Colour}),
    (int, set()),
    (None, set()),
    ("Colour", set()),
    (ForwardRef("Colour"), set()),
    (Colour | None, {Colour}),
    (Optional[Colour], {Colour}),  # noqa: UP045 (the case is about it)
    (Union[Colour, list[Size]], {Colour, Size}),  # noqa: UP007 (the case is about it)
    (list[Colour], {Colour}),
    (dict[str, tuple[Level, ...]], {Level}),
    (type[Colour], {Colour}),
    (Annotated[Colour, {"not": "hashable"}], {Colour}),
    (Literal[Colour.RED, "x"], {Colour}),
    (Callable[[Colour], Size], {Colour, Size}),
    (Bound, {Colour}),
    (OneOf, {Colour, Size}),
    (Shade, {Colour}),
    (Paint, {Colour}),
    (list[Paint], {Colour}),
    (Box[Colour], {Colour, Size}),
    (Order, {Colour}),
    (Pair, {Colour}),
    (Half, set()),
    (Mode, {Mode}),
]


@pytest.mark.parametrize(("hint", "kinds"), REACHED)
def test_every_enum_that_a_hint_reaches_is_found(hint: Any, kinds: Any) -> None:
    """Unions, containers, aliases and the fields of records."""
    assert enums_of([str, hint]) == {kind.__qualname__: kind for kind in kinds}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the type statement is of Python 3.12")
def test_the_type_statement_is_looked_into() -> None:  # pragma: no cover
    """An alias that is evaluated late."""
    scope: dict[str, Any] = {"Colour": Colour}
    exec("type Alias = list[Colour]\ntype Broken = Nowhere", scope)  # noqa: S102 (no syntax of 3.11)
    assert enums_of([scope["Alias"], scope["Broken"]]) == {"Colour": Colour}


def unlike(name: str) -> type[Enum]:
    """Make another class of the wire name Colour."""
    made: type[Enum] = cast("Any", Enum)("Colour", name)
    return made


def test_two_classes_of_one_wire_name_are_an_error() -> None:
    """A payload could not say which is meant."""
    other = unlike("BLUE")
    with pytest.raises(ValueError, match="two Enum classes are called Colour"):
        enums_of([Colour, other])
    assert enums_of([Colour, Colour]) == {"Colour": Colour}


def test_an_enum_the_task_does_not_name_is_refused_with_advice() -> None:
    """At enqueue, not when the worker fails to read it."""
    assert encode_arguments({"c": [Colour.RED]}, enums=ENUMS).data.endswith(b'[{"$enum":["Colour","RED"]}]}}')
    for member in (Level.LOW, unlike("RED")["RED"]):
        with pytest.raises(Unencodable) as refusal:
            encode_arguments({"c": [member]}, enums={"Colour": Colour})
        (problem,) = refusal.value.problems
        assert problem.field == "arguments.c[0]"
        assert "annotate the parameter" in problem.hint


def test_without_names_any_enum_is_written() -> None:
    """The oracle and tools have no task at hand."""
    assert encode_arguments({"c": Level.LOW}).data == b'{"v":1,"arguments":{"c":{"$enum":["Level","LOW"]}}}'


def test_an_alias_comes_back_as_the_member_it_names() -> None:
    """Python itself knows only one."""
    data = encode_arguments({"c": Colour.CRIMSON}).data
    assert decode_arguments(data, enums=ENUMS) == {"c": Colour.RED}


@pytest.mark.parametrize(
    "name", ["Path", "pathlib.Path", "Colour", "__import__", "os.system", "builtins.int"]
)
def test_no_class_is_found_by_a_stored_name(name: Any) -> None:
    """Whatever a payload says, only the mapping counts."""
    data = b'{"v":1,"arguments":{"c":{"$enum":["%s","RED"]}}}' % name.encode()
    with pytest.raises(Undecodable, match="which the task does not name"):
        decode_arguments(data)


class Gaps(Flag):
    """Flags with a part that has several bits and no name of its own for each."""

    BOTH = 3
    RUN = 4


class Loose(IntFlag):
    """Flags that keep bits without name."""

    READ = 1


class Lenient(Enum):
    """An Enum that makes members up."""

    KNOWN = 1

    @classmethod
    def _missing_(cls, value: object) -> Lenient:
        made = object.__new__(cls)
        made._name_, made._value_ = "MADE_UP", cast("int", value)
        return made


@pytest.mark.parametrize("member", [Loose.READ | 8, Loose(8), Lenient(7)])
def test_members_that_no_class_declares_are_refused(member: Any) -> None:
    """They have no name to be found by."""
    with pytest.raises(Unencodable) as refusal:
        encode_arguments({"c": member})
    assert "does not declare" in refusal.value.problems[0].message


def test_a_member_whose_name_has_no_utf8_is_refused() -> None:
    """Names can be anything if a class is made by a call."""
    with pytest.raises(Unencodable) as refusal:
        encode_arguments({"c": unlike("\ud800")["\ud800"]})
    assert "lone surrogate" in refusal.value.problems[0].message


@pytest.mark.parametrize("member", [Gaps.BOTH, Gaps.BOTH | Gaps.RUN, Gaps(0), Loose.READ, Loose(0)])
def test_flags_come_back_as_they_are(member: Any) -> None:
    """By the names of their parts."""
    kind = type(member)
    read = decode_arguments(encode_arguments({"c": member}).data, enums={kind.__qualname__: kind})
    assert read == {"c": member}
    assert type(read["c"]) is kind


def test_whoever_only_looks_sees_the_text_of_members_that_are_not_known() -> None:
    """Also in a set; known ones are themselves, and what has no form of a member stays unreadable."""
    given = {"c": {Colour.RED}, "m": Mode.READ | Mode.RUN, "s": Size.L}
    data = encode_arguments(given).data
    shown = decode_arguments(data, enums={"Size": Size}, is_showing=True)
    assert shown == {"c": {"Colour.RED"}, "m": "Mode.READ|RUN", "s": Size.L}
    assert decode_arguments(data, enums=ENUMS, is_showing=True) == given
    gone = b'{"v":1,"arguments":{"s":{"$enum":["Size","GONE"]}}}'
    assert decode_arguments(gone, enums={"Size": Size}, is_showing=True) == {"s": "Size.GONE"}
    result = encode_result(Colour.RED)
    assert decode_result(result, is_showing=True) == "Colour.RED"
    assert decode_result(None, is_showing=True) is None
    for is_showing, bad in ((False, gone), (True, b'{"v":1,"arguments":{"s":{"$enum":[7]}}}')):
        with pytest.raises(Undecodable):
            decode_arguments(bad, enums={"Size": Size}, is_showing=is_showing)
