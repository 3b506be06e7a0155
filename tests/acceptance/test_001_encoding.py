"""Description B, what goes over the wire: values that come back exactly, ids, limits, refusals."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from fairlane import ConfigError, Fairlane, InvalidJob, PayloadTooLarge
from fairlane.model.identifiers import made_at
from fairlane.model.instants import SECOND
from fairlane.model.payload.encoding import Undecodable, decode_arguments
from fairlane.store.contract.jobs import MAX_BATCH_SIZE
from tests.acceptance.presets import work
from tests.acceptance.world import World
from tests.model.payload.test_payload_vectors import SCHEMA, fits, meant, vectors

MOST = 1_048_576


class Colour(Enum):
    """An application's own enumeration."""

    SALMON = "salmon"
    BLUE = 2


async def paint(colour: Colour, others: list[Colour]) -> None:
    """Take enumerations."""


async def keep(value: Any) -> None:
    """Take anything."""


async def came_back(world: World, value: object) -> object:
    """Send a value through the store and return what a worker reads."""
    app = world.app()
    await app.task(name="keep")(keep).aenqueue(value)
    return world.arguments(await world.take())["value"]


async def test_001_cp1_1_a_job_comes_back_with_all_its_fields(world: World) -> None:
    """What was enqueued is what is read, by its owner and by its worker."""
    app = world.app()
    parent = await app.task(name="parent")(work).using(tenant="acme").aenqueue()
    sent = await (
        app.task(name="keep")(keep)
        .using(
            tenant="acme",
            priority=7,
            delay=60,
            expires_in=600,
            idempotency_key="order-1",
            dedup_key="order",
            correlation_id="action-1",
            parent=parent,
            max_attempts=3,
            timeout=90,
            tags=["kind=fax", "urgent"],
            metadata={"from": "web", "rows": [1, None, 2.5]},
        )
        .aenqueue({"deep": [1, "é", None, True]})
    )
    read = await app.jobs.aget(sent.id)
    assert read == sent
    assert (read.priority, read.max_attempts, read.correlation_id) == (7, 3, "action-1")
    assert (read.idempotency_key, read.dedup_key, read.parent_id) == ("order-1", "order", parent.id)
    assert read.tags == {"kind=fax", "urgent"}
    assert read.metadata == {"from": "web", "rows": [1, None, 2.5]}
    assert read.run_at - read.enqueued_at == timedelta(seconds=60)
    assert read.expires_at is not None
    assert read.expires_at - read.enqueued_at == timedelta(seconds=600)
    await app.jobs.arun_now(sent.id)
    claims = await world.claim(2)
    (claim,) = [one for one in claims if one.job.id == sent.id]
    assert world.arguments(claim) == {"value": {"deep": [1, "é", None, True]}}
    assert claim.job.timeout == 90 * SECOND


@pytest.mark.parametrize(
    "value",
    [
        datetime(2024, 2, 29, 23, 59, 59, 123_456, tzinfo=UTC),
        datetime(2024, 3, 10, 2, 30, 0, 1, tzinfo=timezone(timedelta(hours=-5))),
    ],
)
async def test_001_en_1_a_datetime_keeps_its_instant_and_its_microseconds(
    world: World, value: datetime
) -> None:
    """It is stored in UTC, together with the offset that it was given with."""
    read = await came_back(world, value)
    (job,) = (await world.apps[-1].jobs.afind()).items
    wire = json.loads((await world.record(job)).payload)["arguments"]["value"]["$datetime"]
    assert wire == value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    assert read == value
    assert isinstance(read, datetime)
    assert (read.microsecond, read.utcoffset()) == (value.microsecond, value.utcoffset())


@pytest.mark.parametrize(
    "value",
    [b"\x00\xff", Decimal("0.10"), UUID(int=7), date(2024, 2, 29), time(9, 30), timedelta(microseconds=-1)],
)
async def test_001_en_2_values_of_richer_types_come_back_as_they_were(world: World, value: object) -> None:
    """Type and value, to the last digit."""
    read = await came_back(world, value)
    assert (type(read), repr(read)) == (type(value), repr(value))


async def test_001_en_2_members_of_an_enumeration_come_back_as_members(world: World) -> None:
    """Of the class that the handler's own types name."""
    await world.app().task(name="paint")(paint).aenqueue(Colour.SALMON, [Colour.BLUE])
    read = world.arguments(await world.take())
    assert (read["colour"], read["others"]) == (Colour.SALMON, [Colour.BLUE])
    assert isinstance(read["colour"], Colour)


@pytest.mark.parametrize("value", [{1, 2}, frozenset({"a"}), (1, (2, [3])), None, (), set()])
async def test_001_en_3_sets_tuples_and_none_come_back_as_they_were(world: World, value: object) -> None:
    """A tuple stays a tuple."""
    read = await came_back(world, value)
    assert (type(read), read) == (type(value), value)


def _lambda() -> object:
    return lambda: None


def _lock() -> object:
    return threading.Lock()


def _file() -> object:
    return Path("/dev/null").open(encoding="utf-8")


def _connection() -> object:
    return socket.socket()


@pytest.mark.parametrize("make", [_lambda, _lock, _file, _connection])
async def test_001_en_4_what_cannot_travel_is_refused_with_its_path(
    world: World, make: Callable[[], object]
) -> None:
    """A connection, a file, a lambda: refused before anything is stored."""
    app, value = world.app(), make()
    with pytest.raises(InvalidJob) as refused:
        await app.task(name="keep")(keep).aenqueue({"rows": [1, value]})
    if hasattr(value, "close"):
        value.close()
    assert [problem.field for problem in refused.value.problems] == ["arguments.value.rows[1]"]
    assert sum((await app.jobs.acount()).values()) == 0


async def test_001_ec_4_an_argument_that_cannot_be_written_is_refused_at_enqueue(world: World) -> None:
    """Not when a worker meets it."""
    app = world.app()
    with pytest.raises(InvalidJob, match=r"arguments\.value"):
        await app.task(name="keep")(keep).aenqueue(object())
    assert sum((await app.jobs.acount()).values()) == 0


async def test_001_en_5_the_envelope_has_a_version(world: World) -> None:
    """Every stored payload says it."""
    await world.app().task(name="keep")(keep).aenqueue(1)
    assert json.loads((await world.take()).job.payload)["v"] == 1


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_001_en_5_an_unknown_envelope_version_is_refused_clearly(version: object) -> None:
    """The message says which version it is and which is read."""
    with pytest.raises(Undecodable, match="version"):
        decode_arguments(json.dumps({"v": version, "arguments": {}}).encode())


async def test_001_en_6_ids_sort_by_time_and_tell_it(world: World) -> None:
    """Also those made within one millisecond, in the order in which they were made."""
    app = world.app()
    before = app.client.clock.wall()
    call = app.task(name="work")(work).bind()
    ids = [job.id for job in await app.aenqueue_many([call] * MAX_BATCH_SIZE)]
    ids += [(await app.aenqueue_many([call]))[0].id for _ in range(20)]
    after = app.client.clock.wall()
    assert ids == sorted(ids)
    assert all(before - 1_000 <= made_at(id) <= after + 1_000 for id in ids)


def named(app: Fairlane, **options: Any) -> object:
    """Declare a task with these options."""
    return app.task(**{"name": "work", **options})(work)


@pytest.mark.parametrize(
    "option",
    [{"timeout": 86_400}, {"timeout": 1}, {"priority": 100}, {"priority": -100}, {"max_attempts": 101}],
)
async def test_001_en_7_a_value_at_its_limit_is_accepted(world: World, option: dict[str, Any]) -> None:
    """A hundred retries are 101 attempts."""
    job = await world.app().task(name="work")(work).using(**option).aenqueue()
    record = await world.record(job)
    ((name, value),) = option.items()
    assert getattr(record, name) == (value * SECOND if name == "timeout" else value)


@pytest.mark.parametrize(
    ("option", "field"),
    [
        ({"timeout": 86_401}, "timeout"),
        ({"priority": 101}, "priority"),
        ({"priority": -101}, "priority"),
        ({"max_attempts": 1_001}, "max_attempts"),
        ({"queue": "q" * 64}, "queue"),
    ],
)
async def test_001_en_7_a_value_over_its_limit_is_refused(
    world: World, option: dict[str, Any], field: str
) -> None:
    """By name; the semantics allow longer names and more attempts than this description (S3)."""
    with pytest.raises(InvalidJob) as refused:
        await world.app().task(name="work")(work).using(**option).aenqueue()
    assert [problem.field for problem in refused.value.problems] == [field]


@pytest.mark.parametrize(("length", "is_legal"), [(200, True), (201, False)])
def test_001_en_7_a_task_name_has_at_most_200_characters(world: World, length: int, is_legal: bool) -> None:
    """Our limit is above the description's hundred (S3)."""
    if is_legal:
        named(world.app(), name="t" * length)
    else:
        with pytest.raises(ConfigError, match="legal name"):
            named(world.app(), name="t" * length)


@pytest.mark.parametrize(
    ("option", "field"),
    [({"timeout": 0}, "timeout"), ({"max_attempts": 0}, "max_attempts"), ({"queue": "a:b"}, "queue")],
)
async def test_001_en_8_values_that_mean_nothing_are_refused(
    world: World, option: dict[str, Any], field: str
) -> None:
    """No time, fewer than no retries, a colon in a queue's name."""
    app = world.app()
    with pytest.raises(InvalidJob) as refused:
        await app.task(name="work")(work).using(**option).aenqueue()
    assert [problem.field for problem in refused.value.problems] == [field]
    assert sum((await app.jobs.acount()).values()) == 0


def test_001_en_8_an_unknown_field_of_the_envelope_is_refused() -> None:
    """It might mean something that this version does not do."""
    with pytest.raises(Undecodable, match="unknown fields: 'priority'"):
        decode_arguments(b'{"v":1,"arguments":{},"priority":5}')


async def sized(app: Fairlane, size: int) -> None:
    """Enqueue a job whose encoded payload and metadata have exactly this size."""
    frame = len(b'{"v":1,"arguments":{"value":""}}') + len(b"{}")
    await app.task(name="keep")(keep).aenqueue("x" * (size - frame))


async def test_001_cp1_4_a_payload_over_1_048_576_bytes_is_refused_before_the_store_is_touched(
    world: World,
) -> None:
    """There is not even a file."""
    app = Fairlane(f"sqlite:///{world.folder}/untouched.db", payload={"sensitive": "allow"})
    with pytest.raises(PayloadTooLarge, match="1,048,577"):
        await sized(app, MOST + 1)
    assert not (world.folder / "untouched.db").exists()


async def test_001_mg_2_exactly_1_048_576_bytes_pass_and_2_mb_do_not(world: World) -> None:
    """The limit itself is within it."""
    app = world.app(payload={"sensitive": "allow"})
    await sized(app, MOST)
    assert (await app.jobs.apeek("default"))[0].task == "keep"


async def test_001_mg_2_a_payload_of_2_mb_is_refused(world: World) -> None:
    """It is named too large, and nothing is stored."""
    app = world.app(payload={"sensitive": "allow"})
    with pytest.raises(PayloadTooLarge):
        await sized(app, 2 * MOST)
    assert await app.jobs.apeek("default") == ()


@pytest.mark.parametrize(
    "vector", [one for one in vectors("accepted") if "$enum" not in one.values[0]["wire"]]
)
async def test_001_ex_15_an_enqueued_job_is_stored_as_the_published_vectors_say(
    world: World, vector: dict[str, str]
) -> None:
    """Byte for byte, and as the published schema allows; members of enumerations need a handler's types."""
    await world.app(payload={"sensitive": "allow"}).task(name="keep")(keep).aenqueue(meant(vector))
    stored = (await world.take()).job.payload.decode()
    inner = vector["wire"].removeprefix('{"v":1,"arguments":').removesuffix("}")
    assert stored == f'{{"v":1,"arguments":{{"value":{inner}}}}}'
    assert fits(json.loads(stored), SCHEMA)
