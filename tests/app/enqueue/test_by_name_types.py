"""JSON arguments become what the handler's hints ask for, through a published schema, on a real file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag
from pathlib import Path
from typing import Any, Literal, TypedDict
from uuid import UUID

import msgspec
import pytest

from fairlane import Fairlane, InvalidJob, Job
from fairlane.app.arguments.from_json import enums_in, is_fitting, read_arguments
from fairlane.app.arguments.json_formats import FORMATS
from fairlane.app.enqueue.checks import ProblemList
from fairlane.app.task.handler import Handler, schema_of
from fairlane.app.task.record import task_record_of
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import RegisterRequest, TaskRecord, WorkerRecord


class Colour(Enum):
    """What only the worker has."""

    RED = "r"
    CRIMSON = "r"  # noqa: PIE796 (another name for the same)
    GREEN = "g"


class Mode(Flag):
    """Parts that go together."""

    READ = 1
    WRITE = 2
    RUN = 4


class Row(TypedDict):
    """A dict with known fields."""

    at: datetime
    price: Decimal


def take(
    *,
    when: datetime | None = None,
    day: date | None = None,
    clock: time = time(9),
    every: timedelta = None,  # type: ignore[assignment]  # noqa: RUF013 (people write it)
    price: Decimal | None = None,
    key: UUID | None = None,
    raw: bytes | None = None,
    colour: Colour | None = None,
    modes: Mode | None = None,
    only: Literal[Colour.GREEN] | None = None,
    days: list[date] | None = None,
    prices: dict[str, Decimal] | None = None,
    tags: set[str] | None = None,
    codes: frozenset[int] | None = None,
    pair: tuple[int, date] | None = None,
    points: tuple[float, ...] | None = None,
    more: Sequence[datetime] | None = None,
    by: Mapping[str, list[UUID]] | None = None,
    row: Row | None = None,
    text: str | date | None = None,
    moment: date | datetime | None = None,
) -> None:
    """Take one of each."""


WHEN = datetime(2026, 7, 1, 10, tzinfo=UTC)
EAST = datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=2)))
KEY = UUID("0198c8e4-5b7e-7000-8000-0123456789ab")

FORMS: list[tuple[str, Any, Any]] = [
    ("when", "2026-07-01T10:00:00Z", WHEN),
    ("when", "2026-07-01T12:00:00+02:00", EAST),
    ("when", "2026-07-01T10:00Z", WHEN),
    ("day", "2026-07-01", date(2026, 7, 1)),
    ("clock", "09:30:00", time(9, 30)),
    ("clock", "09:30+02:00", time(9, 30, tzinfo=timezone(timedelta(hours=2)))),
    ("every", 90, timedelta(seconds=90)),
    ("every", 1.5, timedelta(seconds=1.5)),
    ("every", "90s", timedelta(seconds=90)),
    ("every", "2h", timedelta(hours=2)),
    ("every", "PT1H30M", timedelta(minutes=90)),
    ("every", "-P1D", timedelta(days=-1)),
    ("every", None, None),
    ("price", "1.20", Decimal("1.20")),
    ("price", 3, Decimal(3)),
    ("key", str(KEY), KEY),
    ("raw", "AP/+", b"\x00\xff\xfe"),
    ("colour", "RED", Colour.RED),
    ("colour", "CRIMSON", Colour.RED),
    ("modes", ["READ", "RUN"], Mode.READ | Mode.RUN),
    ("modes", [], Mode(0)),
    ("only", "GREEN", Colour.GREEN),
    ("days", ["2026-07-01", "2026-07-02"], [date(2026, 7, 1), date(2026, 7, 2)]),
    ("prices", {"a": "1.20", "$b": 3}, {"a": Decimal("1.20"), "$b": Decimal(3)}),
    ("tags", ["a", "b"], {"a", "b"}),
    ("codes", [1, 2], frozenset({1, 2})),
    ("pair", [1, "2026-07-01"], (1, date(2026, 7, 1))),
    ("points", [1, 2.5], (1, 2.5)),
    ("more", ["2026-07-01T10:00:00Z"], [WHEN]),
    ("by", {"a": [str(KEY)]}, {"a": [KEY]}),
    ("row", {"at": "2026-07-01T10:00:00Z", "price": "1", "x": 1}, {"at": WHEN, "price": Decimal(1), "x": 1}),
    ("text", "2026-07-01", "2026-07-01"),
    ("moment", "2026-07-01", date(2026, 7, 1)),
    ("moment", "2026-07-01T10:00:00Z", WHEN),
]
"""Parameter, what somebody writes, what the handler gets."""


async def publish(app: Fairlane, *tasks: TaskRecord) -> None:
    """Introduce a worker."""
    record = WorkerRecord(id="w", host="h", pid=1, version="1", queues=("default",), slots=1, tasks=tasks)
    request = RegisterRequest(scope=Scope.all(), record=record, renew_every=4 * SECOND)
    await app.client.store.registry.register(request)


@pytest.fixture
async def worker(tmp_path: Path) -> AsyncIterator[Fairlane]:
    """An application that has the handler, on a file in which its worker has introduced itself."""
    async with Fairlane(f"sqlite:///{tmp_path}/fairlane.db", config={}) as app:
        app.task(name="take")(take)
        await publish(app, *(task_record_of(task, app.settings) for task in app.client.registry))
        yield app


@pytest.fixture
async def stranger(worker: Fairlane) -> AsyncIterator[Fairlane]:
    """An application on the same file that has no handlers."""
    async with Fairlane(worker.settings.url, config={}) as app:
        yield app


async def arrived(worker: Fairlane, job: Job[Any], name: str) -> Any:
    """Look at an argument as the handler would get it."""
    return (await worker.jobs.aget(job.id)).arguments[name]


@pytest.mark.parametrize(("name", "written", "value"), FORMS, ids=[f"{one[0]}-{one[1]}" for one in FORMS])
async def test_text_arrives_as_the_value_that_it_stands_for(
    worker: Fairlane, stranger: Fairlane, name: str, written: Any, value: Any
) -> None:
    """With the handler at hand and without; the value itself may be passed, too."""
    for app, given in ((stranger, written), (worker, written), (stranger, value), (worker, value)):
        job = await app.aenqueue_by_name("take", {name: given}, tenant="acme")
        found = await arrived(worker, job, name)
        assert (found, type(found)) == (value, type(value))


BAD: list[tuple[str, Any, str, str]] = [
    ("when", "2026-07-01T10:00:00", "when", "give a date and time with Z or an offset"),
    ("when", "soon", "when", "cannot be read as date-time"),
    ("when", 5, "when", "is of type int"),
    ("day", "2026-07-01T10:00:00Z", "day", "give a date, as in"),
    ("clock", "9 o'clock", "clock", "give a time of day, as in"),
    ("every", "soon", "every", "give seconds, or a duration as in"),
    ("every", True, "every", "is of type bool"),
    ("every", 1e300, "every", "is of type float"),
    ("price", 1.2, "price", "is of type float"),
    ("price", "NaN", "price", "cannot be read as decimal"),
    ("key", "x", "key", "give a UUID, as in"),
    ("raw", "not base64!", "raw", "give bytes in base64"),
    ("colour", "BLUE", "colour", "is none of the allowed values; give one of RED, CRIMSON, GREEN"),
    ("colour", 1, "colour", "is of type int"),
    ("modes", ["FLY"], "modes", "give a list of READ, WRITE, RUN"),
    ("modes", "READ", "modes", "give a list of READ, WRITE, RUN"),
    ("only", "RED", "only", "give one of GREEN"),
    ("days", ["2026-07-01", "x"], "days[1]", "cannot be read as date"),
    ("days", "2026-07-01", "days", "is of type str"),
    ("prices", {"a b": "x"}, "prices['a b']", "cannot be read as decimal"),
    ("tags", ["a", "a"], "tags", "has an item twice"),
    ("pair", [1], "pair", "has 1 item(s); give an array of 2"),
    ("pair", [1, "x"], "pair[1]", "cannot be read as date"),
    ("row", {"at": "x", "price": "1"}, "row.at", "cannot be read as date-time"),
    ("moment", "soon", "moment", "cannot be read as any of these"),
]


@pytest.mark.parametrize(
    ("name", "written", "path", "message"), BAD, ids=[f"{one[0]}-{one[1]}" for one in BAD]
)
async def test_what_cannot_be_read_is_told_by_its_path_with_the_form_to_use(
    worker: Fairlane, stranger: Fairlane, name: str, written: Any, path: str, message: str
) -> None:
    """One problem, and nothing of the value in it."""
    for app in (worker, stranger):
        with pytest.raises(InvalidJob) as caught:
            await app.aenqueue_by_name("take", {name: written}, tenant="acme")
        (problem,) = caught.value.problems
        assert (problem.field, problem.code) == (f"arguments.{path}", "arguments")
        assert message in f"{problem.message}; {problem.hint}"
    assert sum((await worker.jobs.acount()).values()) == 0


async def test_a_schema_from_before_formats_were_published_still_works(stranger: Fairlane) -> None:
    """What it does not describe stays as it is given."""
    schema = b'{"properties":{"when":{},"pages":{"type":"integer"}},"required":["when"]}'
    await publish(stranger, TaskRecord(name="old", queue="default", schema=schema))
    for given in ("2026-07-01T10:00:00Z", WHEN):
        job = await stranger.aenqueue_by_name("old", {"when": given, "pages": 3}, tenant="acme")
        assert job.arguments == {"when": given, "pages": 3}


def test_every_type_is_described_in_json_schema() -> None:
    """As published, for programs in other languages."""
    schema = schema_of(Handler(take, "take"))["properties"]
    null = {"type": "null"}
    described = {name: one["anyOf"][0] for name, one in schema.items() if one.get("anyOf", [0])[-1] == null}
    assert schema["clock"] == {"type": "string", "format": "time"}
    assert schema["every"] == {"anyOf": [{"type": "string", "format": "duration"}, null]}
    assert described["when"] == {"type": "string", "format": "date-time"}
    assert described["raw"] == {"type": "string", "format": "byte"}
    assert described["colour"] == {"enum": ["RED", "CRIMSON", "GREEN"], "format": "enum", "title": "Colour"}
    assert described["modes"] == {
        "type": "array", "format": "flags", "items": {"enum": ["READ", "WRITE", "RUN"]}, "title": "Mode",
    }  # fmt: skip
    assert described["prices"] == {
        "type": "object", "additionalProperties": {"type": "string", "format": "decimal"},
    }  # fmt: skip
    assert described["tags"] == {"type": "array", "format": "set", "items": {"type": "string"}}
    assert described["pair"] == {
        "type": "array",
        "format": "tuple",
        "prefixItems": [{"type": "integer"}, {"type": "string", "format": "date"}],
    }
    assert msgspec.json.decode(msgspec.json.encode(schema)) == schema


@pytest.mark.parametrize(
    "schema", [{"type": ["string", "null"]}, {"items": 5}, {"type": "array", "items": True}, {}, True]
)
def test_a_schema_of_somebody_else_is_read_as_far_as_it_is_known(schema: Any) -> None:
    """What is not understood does not refuse."""
    assert is_fitting(["x"], schema, {}) or is_fitting("x", schema, {})
    assert enums_in({"properties": {"x": schema}}) == {}


def test_each_format_names_its_form_and_reads_its_example() -> None:
    """The example in the hint is one that is accepted."""
    for name, known in FORMATS.items():
        for example in known.form.split('"')[1::2]:
            assert is_fitting(example, {"type": "string", "format": name}, {}), (name, example)


def test_no_more_than_a_hundred_problems_are_told() -> None:
    """Of a long list that is wrong throughout."""
    problems = ProblemList(0)
    schema = schema_of(Handler(take, "take"))
    read_arguments(problems, {"days": ["x"] * 1_000, "clock": "x"}, schema, {})
    assert len(problems.found) == 100
