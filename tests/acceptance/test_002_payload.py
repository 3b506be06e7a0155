"""Description C, what may be enqueued: required fields, sensitive content, sizes, keys."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from fairlane import (
    ConfigError,
    DuplicateJob,
    IdempotencyMismatch,
    InvalidJob,
    PayloadTooLarge,
    SensitivePayload,
    State,
    Task,
)
from fairlane.store.contract.dead import DeadGetRequest
from tests.acceptance.presets import C_CATEGORIES, Preset, strict
from tests.acceptance.working import burst
from tests.acceptance.world import ALL, World

SECRETS = {
    "a password": {"password": "hunter2"},
    "an access token by name": {"api_token": "abc"},
    "a key by its look": {"note": "AKIAIOSFODNN7EXAMPLE"},
    "a mail body": {"email_body": "Dear Ada, ..."},
    "the content of a document": {"document": "x" * 2_001},
}


async def keep(value: Any) -> None:
    """Take anything."""


@pytest.fixture
async def preset(world: World) -> Preset:
    """Return the preset of description C, in force."""
    return await world.open(strict(world.url))


def complete(task: Task[..., Any], firm: str = "firm-123", key: str = "fetch-789") -> Task[..., Any]:
    """Set every option that strict mode requires."""
    return task.using(tenant=firm, correlation_id="c0ffee", idempotency_key=key)


def events(caplog: pytest.LogCaptureFixture, event: str) -> list[str]:
    """Return the messages of one kind of warning."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == logging.WARNING and vars(record).get("event") == event
    ]


async def test_002_pl_1_the_sample_payload_is_accepted(world: World, preset: Preset) -> None:
    """Firm 123, connection 456, message 789, with key and correlation."""
    job = await complete(preset["fetch"]).aenqueue(connection_id=456, message_id=789)
    assert (job.tenant, job.idempotency_key, job.correlation_id) == ("firm-123", "fetch-789", "c0ffee")
    assert world.arguments(await world.take()) == {"connection_id": 456, "message_id": 789}


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({}, {"tenant", "correlation_id", "idempotency_key"}),
        ({"tenant": "firm-1", "correlation_id": "c"}, {"idempotency_key"}),
        ({"tenant": "firm-1", "idempotency_key": "k"}, {"correlation_id"}),
        ({"correlation_id": "c", "idempotency_key": "k"}, {"tenant"}),
    ],
)
async def test_002_cm_2_strict_mode_names_each_field_that_is_missing(
    preset: Preset, given: dict[str, str], missing: set[str]
) -> None:
    """All of them at once."""
    with pytest.raises(InvalidJob) as refused:
        await preset["fetch"].using(**given).aenqueue(1, 2)  # type: ignore[arg-type]
    assert {problem.field for problem in refused.value.problems} == missing


async def test_002_tr_1_a_job_without_its_required_fields_is_not_stored(preset: Preset) -> None:
    """With them it is."""
    with pytest.raises(InvalidJob):
        await preset["fetch"].aenqueue(1, 2)
    with pytest.raises(TypeError, match="message_id"):
        await complete(preset["fetch"]).aenqueue(connection_id=1)
    assert sum((await preset.app.jobs.acount()).values()) == 0
    await complete(preset["fetch"]).aenqueue(1, 2)
    assert sum((await preset.app.jobs.acount()).values()) == 1


async def test_002_cm_1_reject_refuses_a_sensitive_payload(preset: Preset) -> None:
    """The path is named, the value never."""
    task = preset.app.task(name="keep")(keep)
    with pytest.raises(SensitivePayload, match=r"arguments\.value\.password") as refused:
        await complete(task).aenqueue({"password": "hunter2"})
    assert "hunter2" not in str(refused.value)
    assert sum((await preset.app.jobs.acount()).values()) == 0


async def test_002_cm_1_warn_stores_it_unaltered_and_says_where(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """What is stored is never changed; only what is shown is redacted (S6)."""
    await world.app(payload={"sensitive": "warn"}).task(name="keep")(keep).aenqueue({"password": "hunter2"})
    (message,) = events(caplog, "payload_sensitive")
    assert "arguments.value.password" in message
    assert "hunter2" not in caplog.text
    assert world.arguments(await world.take()) == {"value": {"password": "hunter2"}}


@pytest.mark.parametrize("value", SECRETS.values(), ids=SECRETS)
async def test_002_tr_2_each_kind_of_sensitive_content_is_refused(
    preset: Preset, value: dict[str, str]
) -> None:
    """By the name of the field, by the look of the value, by being long free text."""
    with pytest.raises(SensitivePayload):
        await complete(preset.app.task(name="keep")(keep)).aenqueue({"rows": [value]})


async def test_002_tr_2_plain_content_is_accepted(preset: Preset) -> None:
    """References and names are no secrets."""
    plain = {"password_reset_id": 7, "document_id": "d-1", "note": "call back", "sort_key": "name"}
    await complete(preset.app.task(name="keep")(keep)).aenqueue(plain)


@pytest.mark.parametrize(("size", "warns"), [(10_240, False), (10_241, True)])
async def test_002_tr_4_a_payload_warns_above_10_240_bytes(
    world: World, caplog: pytest.LogCaptureFixture, size: int, warns: bool
) -> None:
    """It is stored all the same."""
    app = world.app(payload={"sensitive": "allow"})
    frame = len(b'{"v":1,"arguments":{"value":""}}') + len(b"{}")
    job = await app.task(name="keep")(keep).aenqueue("x" * (size - frame))
    assert bool(events(caplog, "payload_large")) is warns
    assert job.state is State.READY


async def test_002_tr_4_a_payload_above_1_mb_is_refused(world: World) -> None:
    """Nothing is stored."""
    app = world.app(payload={"sensitive": "allow"})
    with pytest.raises(PayloadTooLarge):
        await app.task(name="keep")(keep).aenqueue("x" * 1_048_577)
    assert sum((await app.jobs.acount()).values()) == 0


async def test_002_pl_3_validation_returns_all_errors_at_once(preset: Preset) -> None:
    """Of every item and field."""
    keep_task = preset.app.task(name="keep")(keep)
    bad = keep_task.using(tenant="has space", priority=999, timeout=-1, tags=["\n"])
    with pytest.raises(InvalidJob) as refused:
        await preset.app.aenqueue_many(
            [complete(keep_task).bind(1), bad.bind({"password": "x", "when": object()})]
        )
    assert {(problem.index, problem.field) for problem in refused.value.problems} == {
        (1, "tenant"),
        (1, "priority"),
        (1, "timeout"),
        (1, "tags[0]"),
        (1, "correlation_id"),
        (1, "idempotency_key"),
        (1, "arguments.value.password"),
        (1, "arguments.value.when"),
    }
    assert sum((await preset.app.jobs.acount()).values()) == 0


async def test_002_cm_5_a_key_is_unique_in_its_firm(preset: Preset) -> None:
    """Two enqueues, one job; the same key in another firm is another job."""
    first = await complete(preset["fetch"], "firm-1").aenqueue(1, 2)
    again = await complete(preset["fetch"], "firm-1").aenqueue(1, 2)
    other = await complete(preset["fetch"], "firm-2").aenqueue(1, 2)
    assert (first.created, again.created, other.created) == (True, False, True)
    assert again.id == first.id != other.id
    assert (await preset.app.jobs.acount())[State.READY] == 2


async def test_002_tr_6_a_key_is_unique_under_50_concurrent_enqueues(world: World, preset: Preset) -> None:
    """From two applications on the same store; one creates, all get the same job."""
    twin = await world.open(strict(world.url))
    tasks = [complete((preset, twin)[number % 2]["fetch"]) for number in range(50)]
    jobs = await asyncio.gather(*(task.aenqueue(1, 2) for task in tasks))
    assert len({job.id for job in jobs}) == 1
    assert [job.created for job in jobs].count(True) == 1


@pytest.mark.parametrize("is_finished", [False, True])
async def test_002_pl_4_a_repeated_key_raises_where_that_is_asked_for(
    world: World, preset: Preset, is_finished: bool
) -> None:
    """By default the first job is returned, also when it has finished; other arguments are always refused."""
    task = complete(preset["fetch"])
    first = await task.aenqueue(1, 2)
    if is_finished:
        await world.succeed({"fetched_count": 10})
    with pytest.raises(DuplicateJob) as refused:
        await task.using(on_duplicate="raise").aenqueue(1, 2)
    assert refused.value.existing == first.id
    again = await task.aenqueue(1, 2)
    assert (again.id, again.created, again.is_finished) == (first.id, False, is_finished)
    with pytest.raises(IdempotencyMismatch):
        await task.aenqueue(1, 3)


async def test_002_pl_2_all_eight_categories_are_accepted_and_an_unknown_one_is_refused(
    world: World, preset: Preset
) -> None:
    """Each with the fields it needs; a task of another category can neither be enqueued nor served."""
    assert len(C_CATEGORIES) == 8
    for category, needed in C_CATEGORIES.items():
        job = await complete(preset[category], key=category).aenqueue(**dict.fromkeys(needed, 7))
        assert (await job.arefresh()).state is State.READY
    odd = preset.app.task(name="odd", category="ingestoin")(keep)
    with pytest.raises(InvalidJob, match="category: ingestoin of task odd is not declared") as caught:
        await complete(odd, key="odd").aenqueue(1)
    assert [problem.code for problem in caught.value.problems] == ["category"]
    with pytest.raises(ConfigError, match="category ingestoin is not one of payload"):
        await world.declare()


@pytest.mark.parametrize("category", [name for name, needed in C_CATEGORIES.items() if needed])
async def test_002_tr_3_a_category_has_required_fields_of_its_own(preset: Preset, category: str) -> None:
    """Missing or empty, each is named; nothing is stored."""
    (needed,) = C_CATEGORIES[category]
    for arguments in ({}, {needed: None}):
        with pytest.raises(InvalidJob) as caught:
            await complete(preset[category]).aenqueue(**arguments)
        assert [problem.text for problem in caught.value.problems] == [
            f"arguments.{needed}: is missing; category {category} needs it"
        ]
    assert (await preset.app.jobs.acount()).total == 0


async def test_002_pl_8_an_error_message_is_cut_at_500_characters(world: World, preset: Preset) -> None:
    """In the history of the job and in its dead letter; the class and the type stay whole."""

    async def fail() -> None:
        raise ValueError("x" * 501)

    task = preset.app.task(name="fail", max_attempts=1)(fail)
    job = await complete(task).aenqueue()
    await burst(preset.app)
    ended = await job.arefresh()
    (attempt,) = ended.attempts
    assert (ended.state, attempt.message, attempt.error_type) == (State.DEAD, "x" * 500, "ValueError")
    letter = await world.store.dead.get(DeadGetRequest(scope=ALL, id=job.id))
    assert letter is not None
    assert letter.job.attempts[-1].failure is not None
    assert letter.job.attempts[-1].failure.message == "x" * 500
