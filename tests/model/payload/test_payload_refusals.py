"""What a payload cannot hold is refused with its path, its type and advice, never with its value (S5)."""

from __future__ import annotations

import sqlite3
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest

from fairlane.model.errors import Problem
from fairlane.model.payload.encoding import PayloadRules, Unencodable, decode_arguments, encode_arguments


class Money(Decimal):
    """A Decimal with a currency, say."""


class Tag(str):
    """Text that is more than text."""

    __slots__ = ()


class Count(int):
    """An integer that is more than one."""


class Reading(float):
    """Like the floats of numerical libraries."""


class Stamp(datetime):
    """Like the datetimes of date libraries."""


class Odd(tzinfo):
    """A zone of another library."""

    def utcoffset(self, dt: datetime | None) -> timedelta:  # pragma: no cover
        """Never asked."""
        raise AssertionError

    def dst(self, dt: datetime | None) -> None:
        """Never asked."""

    def tzname(self, dt: datetime | None) -> None:
        """Never asked."""


@dataclass
class Mail:
    """A record."""

    to: str


class Record(msgspec.Struct):
    """A record of another kind."""

    to: str


Point = namedtuple("Point", "x y")  # noqa: PYI024 (the case is about it)
BERLIN = ZoneInfo("Europe/Berlin")
SECRET = "hunter2"


def problems_of(value: Any) -> tuple[Problem, ...]:
    """Return the problems of arguments with this one value."""
    with pytest.raises(Unencodable) as refusal:
        encode_arguments({"x": value})
    assert str(refusal.value) == "\n".join(map(str, refusal.value.problems))
    return refusal.value.problems


REFUSED = [
    # what, message, hint
    (float("nan"), "a float that is not a number", "None"),
    (float("inf"), "a float that is not a number or not finite", "None"),
    (float("-inf"), "not finite", "None"),
    (2**63, "an integer beyond 64 bits", "text"),
    (-(2**63) - 1, "an integer beyond 64 bits", "text"),
    (Decimal("NaN"), "a Decimal", "None"),
    (Decimal("sNaN"), "a Decimal", "None"),
    (Decimal("-Infinity"), "a Decimal", "None"),
    (timedelta.max, "64 bits of microseconds", "None"),
    (timedelta.min, "64 bits of microseconds", "None"),
    ("a\ud800", "lone surrogate", "bytes"),
    ("\udfff", "lone surrogate", "bytes"),
    (datetime(2026, 1, 1), "without a time zone", "datetime.now(UTC)"),  # noqa: DTZ001 (the case is about it)
    (datetime(2026, 1, 1, tzinfo=Odd()), "tzinfo", "zoneinfo.ZoneInfo"),
    (datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "years 1 to 9999", "inside"),
    (datetime.min.replace(tzinfo=timezone(timedelta(hours=1))), "years 1 to 9999", "inside"),
    (datetime(2026, 1, 1, tzinfo=timezone(timedelta(0), "\ud800")), "name has a lone surrogate", "Unicode"),
    (time(1, tzinfo=BERLIN), "depends on the day", "naive"),
    (time(1, tzinfo=Odd()), "depends on the day", "naive"),
    (Money("1.20"), "Money", "Decimal(value)"),
    (Tag("x"), "Tag", "str(value)"),
    (Count(1), "Count", "int(value)"),
    (Reading(1), "Reading", "float(value)"),
    (Stamp(2026, 1, 1, tzinfo=UTC), "Stamp", "a plain datetime"),
    (Point(1, 2), "Point", "tuple(value)"),
    (OrderedDict(a=1), "collections.OrderedDict", "dict(value)"),
    (defaultdict(int), "defaultdict", "dict(value)"),
    (Counter("ab"), "Counter", "dict(value)"),
    (MappingProxyType({}), "mappingproxy", "dict(value)"),
    (deque([1]), "deque", "list(value)"),
    (range(3), "range", "list(value)"),
    ((n for n in range(3)), "generator", "list(value)"),
    (bytearray(b"a"), "bytearray", "bytes(value)"),
    (memoryview(b"a"), "memoryview", "bytes(value)"),
    (Path("/etc/passwd"), "Path", "str(value)"),
    (Mail("ada"), "Mail", "dataclasses.asdict(value)"),
    (Record("ada"), "Record", "plain values"),
    (Mail, "type", "plain values"),
    (type("A" * 300, (), {})(), "A" * 50, "plain values"),
    (1j, "complex", "plain values"),
    (Fraction(1, 2), "fractions.Fraction", "plain values"),
    (SimpleNamespace(), "SimpleNamespace", "plain values"),
    (lambda: SECRET, "function", "plain values"),
    (sqlite3, "module", "plain values"),
    (..., "ellipsis", "plain values"),
]


@pytest.mark.parametrize(("value", "message", "hint"), REFUSED)
def test_what_would_not_come_back_as_itself_is_refused(value: Any, message: Any, hint: Any) -> None:
    """001-EN-4: with path, type and advice, and a code for programs."""
    (problem,) = problems_of(value)
    assert (problem.index, problem.field, problem.code) == (0, "arguments.x", "payload")
    assert message in problem.message
    assert hint in problem.hint
    assert len(str(problem)) < 300


def test_an_open_file_or_connection_is_refused_by_the_name_of_its_type(tmp_path: Any) -> None:
    """001-EN-4: connection, file handle."""
    connection = sqlite3.connect(":memory:")
    with (tmp_path / "f").open("w") as handle:
        (problem,) = problems_of(handle)
        assert "_io.TextIOWrapper" in problem.message
        (problem,) = problems_of({"db": connection})
        assert (problem.field, "sqlite3.Connection" in problem.message) == ("arguments.x.db", True)
    connection.close()


def test_a_zone_that_no_worker_could_find_is_refused() -> None:
    """A zone read from a file has whatever key it was given."""
    for key in (None, "Nowhere/Land"):
        with Path("/usr/share/zoneinfo/Europe/Berlin").open("rb") as file:
            zone = ZoneInfo.from_file(file, key=key)
        (problem,) = problems_of(datetime(2026, 1, 1, tzinfo=zone))
        assert "without a known IANA key" in problem.message


class Proxy:
    """Like the request-bound proxies of web frameworks, outside a request."""

    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        """Raise, as they do."""
        raise RuntimeError


def test_a_proxy_that_stands_for_nothing_is_refused() -> None:
    """By its own type, without asking it anything."""
    (problem,) = problems_of(Proxy())
    assert "Proxy" in problem.message


class LoudZone(ZoneInfo):
    """A subclass, which would come back as its base."""


def test_a_subclass_of_a_zone_is_refused() -> None:
    """As every other subclass."""
    (problem,) = problems_of(datetime(2026, 1, 1, tzinfo=LoudZone("Europe/Berlin")))
    assert "tzinfo" in problem.message


def test_a_plain_value_of_each_kind_is_taken() -> None:
    """The refusals above are not simply refusing everything."""
    fine = [
        1,
        1.0,
        "x",
        b"x",
        Decimal(1),
        UUID(int=1),
        date(2026, 1, 1),
        time(1),
        timedelta(1),
        [],
        {},
        set(),
        (),
    ]
    assert decode_arguments(encode_arguments({"x": fine}).data) == {"x": fine}


# --- keys --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [1, None, True, 1.5, b"x", (1,), Tag("x"), date(2026, 1, 1)])
def test_keys_that_are_no_text_are_refused(key: Any) -> None:
    """S5: a subclass of str is none either, since it would come back as str."""
    (problem,) = problems_of([{key: 1}])
    assert problem.field == "arguments.x[0]"
    assert (
        f"has a key of type {type(key).__module__}".replace("builtins", type(key).__name__) in problem.message
    )


def test_a_top_level_key_is_checked_like_any_other() -> None:
    """The fast path for flat arguments is no way around the rules."""
    for key, field in ((1, "arguments"), ("\ud800", "arguments['\\ud800']")):
        with pytest.raises(Unencodable) as refusal:
            encode_arguments({key: 1})  # type: ignore[dict-item]
        assert [problem.field for problem in refusal.value.problems] == [field]


def test_lone_surrogates_in_keys_are_refused_and_shown_escaped() -> None:
    """S5: in keys too."""
    (problem,) = problems_of({"ok": 1, "\udfff!": 2})
    assert problem.field == "arguments.x['\\udfff!']"
    problem.field.encode()


# --- paths -------------------------------------------------------------------------------------------

PATHS = [
    ({"rows": [0, 1, 2, {"when": 1j}]}, "arguments.x.rows[3].when"),
    ({"due date": 1j}, "arguments.x['due date']"),
    ({"größe": 1j}, "arguments.x.größe"),
    ({"a\n\x1b[31m\u202eb": 1j}, "arguments.x['a\\n\\x1b[31m\\u202eb']"),
    ({"k" * 65: 1j}, "arguments.x['" + "k" * 40 + "'…]"),
    ({"k" * 64: 1j}, "arguments.x." + "k" * 64),
    ({"": 1j}, "arguments.x['']"),
    (({1j},), "arguments.x[0][*]"),
    (frozenset({(1, 1j)}), "arguments.x[*][1]"),
    ({"$set": [1j]}, "arguments.x['$set'][0]"),
]


@pytest.mark.parametrize(("value", "path"), PATHS)
def test_a_problem_names_the_path_of_its_value(value: Any, path: Any) -> None:
    """Odd keys are bounded and escaped."""
    (problem,) = problems_of(value)
    assert problem.field == path


def test_all_problems_of_a_payload_are_reported_together() -> None:
    """One enqueue, one answer."""
    with pytest.raises(Unencodable) as refusal:
        encode_arguments({"a": 1j, "b": [float("nan"), 1, {"c": 2**64, 1: "x"}], "d": "fine"})
    assert [problem.field for problem in refusal.value.problems] == [
        "arguments.a",
        "arguments.b[0]",
        "arguments.b[2].c",
        "arguments.b[2]",
    ]


@pytest.mark.parametrize("many", [[1j] * 500, dict.fromkeys(range(500), 0), {str(n): 1j for n in range(500)}])
def test_at_most_a_hundred_problems_are_reported(many: Any) -> None:
    """A list of 500 bad values is one mistake."""
    assert len(problems_of(many)) == 100


def test_no_value_is_echoed() -> None:
    """The message is for logs; a secret must not get there through an error."""

    class Holder:
        def __repr__(self) -> str:
            return SECRET

    for value in (Holder(), Tag(SECRET), SECRET + "\ud800", Money("7777777"), 7777777 * 10**20, Path(SECRET)):
        shown = str(problems_of({"a": value})[0])
        assert SECRET not in shown
        assert "7777777" not in shown


# --- depth -------------------------------------------------------------------------------------------


def nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    """Put a value into so many containers."""
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    return value


WRAPS = [lambda v: [v], lambda v: (v,), lambda v: {"k": v}, lambda v: {"$k": v}, lambda v: frozenset({v})]


@pytest.mark.parametrize("wrap", WRAPS)
def test_thirty_two_levels_pass_and_one_more_is_refused(wrap: Any) -> None:
    """S5: each kind of container is one level, whatever its form on the wire."""
    deepest = nested(32, wrap)
    assert decode_arguments(encode_arguments({"x": deepest}).data) == {"x": deepest}
    (problem,) = problems_of(nested(33, wrap))
    assert "more than 32 deep" in problem.message
    assert problem.field.startswith("arguments.x")


@pytest.mark.parametrize("wrap", WRAPS)
def test_the_deepest_setting_can_still_be_read(wrap: Any) -> None:
    """What one setting lets in, every worker can read."""
    deepest = nested(128, wrap)
    encoded = encode_arguments({"x": deepest}, rules=PayloadRules(max_depth=128))
    assert decode_arguments(encoded.data) == {"x": deepest}


def test_a_value_that_contains_itself_is_refused() -> None:
    """As too deep, and never with a RecursionError."""
    loop: list[object] = []
    loop.append(loop)
    ring: dict[str, object] = {}
    ring["ring"] = (ring, ring)
    for value in (loop, ring):
        assert "deep" in problems_of(value)[0].message
