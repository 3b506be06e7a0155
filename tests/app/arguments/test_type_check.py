"""Arguments from Python are checked against the type hints of their handler when they are enqueued."""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag, IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar, Union
from uuid import UUID

import msgspec
import pytest

from fairlane import Context, Fairlane, InvalidJob, Task
from fairlane.app.arguments.type_hints import ANYTHING, shape_of
from fairlane.app.task.handler import Handler
from tests.app.world import World

T = TypeVar("T")
Number = NewType("Number", int)


class Colour(Enum):
    """What a task names."""

    RED = "r"
    GREEN = "g"


class Level(IntEnum):
    """An int, too."""

    LOW = 1


class Mode(Flag):
    """Parts that go together."""

    READ = 1
    RUN = 2


class Row(TypedDict, total=False):
    """A dict with known fields."""

    at: datetime
    below: list[Row]


class Pair(NamedTuple):
    """A kind of its own."""

    a: int


@dataclass
class Point:
    """Something that no payload holds."""

    x: int


class Model(msgspec.Struct):
    """Something that no payload holds."""

    x: int


NOW = datetime(2026, 7, 1, tzinfo=UTC)

FITS: list[tuple[Any, list[Any], list[Any]]] = [
    (str, ["", "x"], [1, None, b"x", ["x"], Colour.RED]),
    (int, [0, -1, True, Level.LOW], [1.0, "1", None, Decimal(1)]),
    (float, [1.5, 1, True], ["1", None, Decimal(1)]),
    (bool, [True], [1, 0, "true", None]),
    (None, [None], [0, "", False]),
    (bytes, [b"x", bytearray(b"x")], ["x"]),
    (datetime, [NOW], ["2026-07-01T00:00:00Z", date(2026, 7, 1), 0]),
    (date, [date(2026, 7, 1), NOW], ["2026-07-01"]),
    (time, [time(9)], ["09:00", NOW]),
    (timedelta, [timedelta(1)], [90, "90s"]),
    (Decimal, [Decimal(1)], [1, 1.0, "1"]),
    (UUID, [UUID(int=1)], [str(UUID(int=1))]),
    (Colour, [Colour.RED], ["RED", "r", Level.LOW]),
    (Level, [Level.LOW], [1]),
    (Mode, [Mode.READ, Mode.READ | Mode.RUN], [1]),
    (list, [[], [1, "x"]], [(), {}, "x"]),
    (list[int], [[], [1, True]], [["1"], [1, None], (1,), {1}]),
    (list[list[str]], [[["x"], []]], [["x"], [[1]]]),
    (list[Any], [[1, object]], ["x"]),
    (set[str], [set(), {"x"}], [["x"], {1}, frozenset({"x"})]),
    (frozenset[int], [frozenset({1})], [{1}, frozenset({"1"})]),
    (tuple, [(), (1, "x")], [[1]]),
    (tuple[int, ...], [(), (1, 2)], [("1",), [1]]),
    (tuple[int, str], [(1, "x")], [(1,), ("x", 1), (1, "x", 2), [1, "x"]]),
    (tuple[*tuple[int, ...], str], [(1, "x"), ("x",)], [[1]]),
    (dict, [{}, {"a": 1}], [[], "x"]),
    (dict[str, Decimal], [{}, {"a": Decimal(1)}], [{"a": 1}, []]),
    (Mapping[str, int], [{"a": 1}], [{"a": "1"}, [1]]),
    (Sequence[int], [[1], (1,)], [["1"], ("1",), {1}, 1]),
    (Sequence[str], [["x"], ("x",), "x"], [[1], 1]),
    (Iterable[int], [[1], (1,), {1}], [["1"], 1]),
    (AbstractSet[int], [{1}, frozenset({1})], [[1], {"1"}]),
    (Optional[int], [1, None], ["1", 1.5]),  # noqa: UP045 (the older way to write it)
    (Union[int, list[str]], [1, ["x"]], [[1], "x"]),  # noqa: UP007 (the older way to write it)
    (int | None, [1, None], ["1"]),
    (list[int] | None, [[1], None], [["1"], 1]),
    (Literal["fast", 3], ["fast", 3], ["slow", 3.0, True, 4, None]),
    (Literal[Colour.RED], [Colour.RED], [Colour.GREEN, "RED"]),
    (Annotated[int, "positive"], [1], ["1"]),
    (Annotated[list[int], []], [[1]], [["1"]]),
    (Number, [1], ["1"]),
    (list[Number], [[1]], [["1"]]),
    (Row, [{}, {"at": NOW}, {"more": 1}, {"below": [{"at": NOW}]}], [{"at": "x"}, [], {"below": 1}]),
]


@pytest.mark.parametrize(("hint", "good", "bad"), FITS, ids=[str(one[0]) for one in FITS])
def test_a_hint_allows_what_typing_allows(hint: Any, good: list[Any], bad: list[Any]) -> None:
    """Subclasses, an int for a float, a bool for an int; and no text for a number."""
    shape = shape_of(type(None) if hint is None else hint)
    for value in good:
        assert shape.fits(value), value
    for value in bad:
        assert not shape.fits(value), value
    assert all(shape.fits(made()) for made in shape.fast_types & {str, int, float, list, dict, set})


@pytest.mark.parametrize(
    "hint",
    [
        Any,
        object,
        T,
        Callable[[int], str],
        type[int],
        Point,
        Model,
        Pair,
        Path,
        Enum,
        int | Point,
        Optional["Nowhere"],  # noqa: F821 (a name that nobody defines)
        typing.LiteralString,
        None,
        "Strange",
        "Broken",
    ],
    ids=str,
)
def test_a_hint_that_is_not_understood_allows_everything(hint: Any) -> None:
    """The payload and the handler judge such values."""
    assert shape_of({"Strange": Strange, "Broken": Broken}.get(str(hint), hint)) is ANYTHING


class Odd(type):
    """A metaclass whose classes cannot be looked up."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(cls, other: object) -> bool:
        raise ValueError


class Strange(metaclass=Odd):
    """A class of somebody's own."""


class Broken(TypedDict):
    """A record of which a name cannot be resolved."""

    x: Nowhere  # type: ignore[name-defined]  # noqa: F821 (a name that only a checker sees)


def take(  # type: ignore[no-untyped-def]
    number: int,
    rows: list[int] | None = None,
    day: date = None,  # type: ignore[assignment]  # noqa: RUF013 (people write it)
    odd: int = "seven",  # type: ignore[assignment]
    where: Nowhere = None,  # type: ignore[name-defined]  # noqa: F821 (a name that only a checker sees)
    free=1,
) -> None:
    """Take some of each."""


def taking(app: Fairlane) -> Task[..., None]:
    """Declare the task; its parameters are looked at by nobody but us."""
    return app.task(name="take")(take).using(tenant="acme")


def problems_of(app: Fairlane, call: Any) -> list[str]:
    """Form a call and return what is wrong with it."""
    try:
        app.client.new_jobs([call])
    except InvalidJob as error:
        return [f"{one.field}: {one.message}; {one.hint} ({one.code})" for one in error.problems]
    return []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"number": "x"}, "arguments.number: is of type str; give int (arguments)"),
        ({"number": None}, "arguments.number: is of type NoneType; give int (arguments)"),
        ({"number": 1, "rows": [1, "2"]}, "arguments.rows[1]: is of type str; give int (arguments)"),
        ({"number": 1, "rows": 3}, "arguments.rows: is of type int; give list[int] or None (arguments)"),
        ({"number": 1, "day": "x"}, "arguments.day: is of type str; give date or None (arguments)"),
        ({"number": 1, "odd": "eight"}, "arguments.odd: is of type str; give int (arguments)"),
    ],
)
async def test_a_wrong_type_is_refused_by_its_path(world: World, given: dict[str, Any], problem: str) -> None:
    """In Python as by name, before the store is asked."""
    app = world.app()
    task = taking(app)
    assert problems_of(app, task.bind(**given)) == [problem]
    with pytest.raises(InvalidJob, match=r"arguments\."):
        await task.aenqueue(**given)
    assert world.asked == []


def test_defaults_and_unknown_hints_never_refuse(world: World) -> None:
    """None where it is the default, a default that contradicts its hint, what has no hint that is known."""
    app = world.app()
    task = taking(app)
    for given in ({}, {"rows": None, "day": None}, {"odd": 7}, {"where": 5, "free": "x"}, {"number": True}):
        assert problems_of(app, task.bind(**{"number": 1, **given})) == []


def test_what_the_payload_refuses_is_told_once(world: World) -> None:
    """With the payload's own advice; other misfits of the same call are told too."""
    app = world.app()
    task = taking(app)
    first, second = problems_of(app, task.bind(number=object(), rows=["x"]))
    assert first.startswith("arguments.number: is a object, which would not come back as one")
    assert second == "arguments.rows[0]: is of type str; give int (arguments)"


def test_every_item_of_a_batch_is_looked_at(world: World) -> None:
    """S12: one refused item refuses all, each with its index."""
    app = world.app()
    task = taking(app)
    with pytest.raises(InvalidJob) as caught:
        app.client.new_jobs([task.bind(1), task.bind("x"), task.bind(2), task.bind(1, rows=[None])])
    found = [(one.index, one.field) for one in caught.value.problems]
    assert found == [(1, "arguments.number"), (3, "arguments.rows[0]")]


async def test_the_check_can_be_switched_off(world: World) -> None:
    """For an application whose hints do not say what it passes."""
    app = world.app(payload={"check_types": False})
    job = await taking(app).aenqueue("x")
    assert job.arguments["number"] == "x"


def test_the_context_is_no_argument(world: World) -> None:
    """It is not enqueued, so it is not looked at."""

    def handle(ctx: Context, number: int) -> None: ...

    app = world.app()
    task = app.task(name="handle")(handle).using(tenant="acme")
    assert problems_of(app, task.bind(1)) == []
    assert set(Handler(handle, "handle").shapes) == {"number"}


def test_nothing_of_a_value_is_run_or_shown(world: World) -> None:
    """S6: a list of another kind is left to the payload, and no message quotes what it refuses."""

    class Trap(list[Any]):
        def __iter__(self) -> Any:
            raise AssertionError

    assert shape_of(list[int]).fits(Trap(["x"]))
    app = world.app()
    task = taking(app)
    assert "hunter2" not in str(problems_of(app, task.bind("hunter2", rows=["hunter2"])))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the type statement is of Python 3.12")
def test_a_type_statement_is_followed_and_one_that_holds_itself_has_an_end() -> None:
    """Once: what is inside it again may be anything."""
    space: dict[str, Any] = {}
    exec("type Number = int\ntype Tree = list[Tree] | int", space)  # noqa: S102 (older Pythons cannot read it)
    assert (shape_of(space["Number"]).fits(1), shape_of(space["Number"]).fits("1")) == (True, False)
    assert shape_of(space["Tree"]).fits([[1], 2])
