"""Enqueue by name: a task that only workers have, as they have published it, on a real file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from fairlane import Fairlane, InvalidJob, Limits, Queue, State, UnknownTask
from fairlane.app.arguments.from_json import read_arguments
from fairlane.app.enqueue.checks import ProblemList
from fairlane.app.task.handler import Handler, schema_of
from fairlane.app.task.record import task_record_of
from fairlane.app.task.rules import declared_rules
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import GetRequest
from fairlane.store.contract.policies import PutRequest
from fairlane.store.contract.registry import RegisterRequest, WorkerRecord


async def send(
    to: str, pages: int = 1, mode: Literal["fast", "slow"] = "fast", day: date | None = None
) -> None:
    """Pretend to send a fax."""


CONFIG = {"app": {"priority": "lower_first"}, "tasks": {"fax.send": {"timeout": 90}}}


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    """A file in which a worker has introduced itself, with what its application declares."""
    url = f"sqlite:///{tmp_path}/fairlane.db"
    async with Fairlane(url, queues=[Queue("faxes", limits=Limits(running=3))], config=CONFIG) as app:
        app.task(
            name="fax.send", aliases=["send_fax"], queue="faxes", version=3, priority=4, max_attempts=2,
            at_most_once=True, dedup_until="started",
        )(send)  # fmt: skip
        app.task(name="sweep", system=True)(send)
        store = app.client.store
        await store.policies.put(PutRequest(scope=Scope.all(), rules=declared_rules(app)))
        record = WorkerRecord(
            id="w", host="h", pid=1, version="1", queues=("faxes",), slots=1,
            tasks=tuple(task_record_of(task, app.settings) for task in app.client.registry),
        )  # fmt: skip
        await store.registry.register(
            RegisterRequest(scope=Scope.all(), record=record, renew_every=4 * SECOND)
        )
        yield url


@pytest.fixture
async def app(url: str) -> AsyncIterator[Fairlane]:
    """An application on the same file that has no handlers."""
    async with Fairlane(url, config={}) as made:
        yield made


@pytest.mark.parametrize("name", ["fax.send", "send_fax"])
async def test_a_job_made_by_name_is_like_one_made_with_the_handler(app: Fairlane, name: str) -> None:
    """Queue, version, priority, timeout, attempts and promises are those in force where the task is."""
    job = await app.aenqueue_by_name(name, {"to": "+49"}, tenant="acme", dedup_key="k", tags=["a"])
    assert (job.task, job.queue, job.tenant, job.state) == ("fax.send", "faxes", "acme", State.READY)
    assert job.tags == {"a"}
    stored = await app.client.store.jobs.get(GetRequest(scope=Scope.all(), ids=(job.id,)))
    record = stored[job.id]
    assert (record.version, record.priority, record.max_attempts) == (3, -4, 2)
    assert (record.timeout, record.at_most_once, record.dedup_until) == (90 * SECOND, True, "started")


async def test_options_win_over_what_was_published(app: Fairlane) -> None:
    """As those of `using` do, None for no timeout included."""
    job = await app.aenqueue_by_name("fax.send", {"to": "1"}, tenant="acme", max_attempts=9, timeout=None)
    stored = (await app.client.store.jobs.get(GetRequest(scope=Scope.all(), ids=(job.id,))))[job.id]
    assert (stored.max_attempts, stored.timeout) == (9, None)
    with pytest.raises(TypeError, match="colour"):
        await app.aenqueue_by_name("fax.send", {"to": "1"}, tenant="acme", colour="red")


async def test_a_task_that_nobody_has_published_is_unknown(app: Fairlane) -> None:
    """The nearest one is named."""
    with pytest.raises(
        UnknownTask, match=r"no worker has published a task 'fax.sned'; did you mean 'fax.send'\?"
    ):
        await app.aenqueue_by_name("fax.sned", {}, tenant="acme")
    assert (await app.jobs.acount())[State.READY] == 0


async def test_every_argument_that_does_not_fit_is_told(app: Fairlane) -> None:
    """Missing, unknown and of another type, at once; nothing is stored."""
    with pytest.raises(InvalidJob) as caught:
        await app.aenqueue_by_name("fax.send", {"pagse": 1, "pages": "2", "mode": "hot"}, tenant="acme")
    assert [(problem.field, problem.message, problem.code) for problem in caught.value.problems] == [
        ("arguments.to", "is missing", "arguments"),
        ("arguments.pagse", "is not a parameter of the task; did you mean 'pages'?", "arguments"),
        ("arguments.pages", "is of type str", "arguments"),
        ("arguments.mode", "is none of the allowed values", "arguments"),
    ]
    assert (await app.jobs.acount())[State.READY] == 0


async def test_a_published_system_task_runs_in_system_only(app: Fairlane) -> None:
    """S8 holds without the handler, too."""
    with pytest.raises(InvalidJob, match="system=True"):
        await app.aenqueue_by_name("sweep", {"to": "x"}, tenant="acme")
    assert (await app.aenqueue_by_name("sweep", {"to": "x"}, tenant="system")).tenant == "system"


async def test_a_task_that_is_here_is_called_with_its_own_handler(url: str) -> None:
    """Defaults are filled in, aliases count, and the published one is not asked for."""
    async with Fairlane(url, config={}) as app:
        app.task(name="mail", aliases=["post"])(send)
        job = await app.aenqueue_by_name("post", {"to": "ada"}, tenant="acme")
        stored = (await app.client.store.jobs.get(GetRequest(scope=Scope.all(), ids=(job.id,))))[job.id]
        arguments = msgspec.json.decode(stored.payload)["arguments"]
        assert (job.task, arguments) == ("mail", {"to": "ada", "pages": 1, "mode": "fast", "day": None})
        with pytest.raises(InvalidJob, match=r"arguments\.to: is missing"):
            await app.aenqueue_by_name("mail", {}, tenant="acme")


async def test_fixed_queues_hold_for_published_tasks(url: str) -> None:
    """The home queue need not be declared where the task is not."""
    async with Fairlane(url, queues=[Queue("other")], fixed_queues=True, config={}) as app:
        assert (await app.aenqueue_by_name("fax.send", {"to": "1"}, tenant="a")).queue == "faxes"
        with pytest.raises(InvalidJob, match="stays in its home queue"):
            await app.aenqueue_by_name("fax.send", {"to": "1"}, tenant="a", queue="other")


def test_plain_callers_can_do_it_too(tmp_path: Path) -> None:
    """Through the portal."""
    with Fairlane(f"sqlite:///{tmp_path}/x.db", config={}) as app, pytest.raises(UnknownTask):
        app.enqueue_by_name("nobody", {}, tenant="acme")


# ── the same on a real file ──────────────────────────────────────────────────


async def test_tenants_and_queues_are_steered_on_a_real_file(app: Fairlane) -> None:
    """Look, declare, set, hold, purge and forget, as on any store."""
    for tenant in ("acme", "globex"):
        await app.aenqueue_by_name("fax.send", {"to": "1"}, tenant=tenant)
    assert [tenant.name for tenant in await app.tenants.alist()] == ["acme", "globex"]
    acme = await app.tenants.adeclare("acme", weight=3, labels={"plan": "big"})
    assert (acme.limits["faxes"].running, acme.counts["faxes"][State.READY]) == (3, 1)
    acme = await app.tenants.aset("acme", weight=5, queue="faxes", limits=Limits(running=1), note="slow down")
    assert (acme.weight, acme.limits["faxes"]) == (5, Limits(running=1))
    assert [one.name for one in await app.tenants.alist(labels={"plan": "big"})] == ["acme"]
    await app.tenants.apause("acme", reason="they asked")
    assert await app.queues.adrain("faxes", reason="deploy")
    assert [queue.name for queue in await app.queues.alist()] == ["default", "faxes"]
    waiting = await app.jobs.aexplain((await app.jobs.afind(tenant="acme")).items[0].id)
    assert (waiting.reason, waiting.subject.split()[:2]) == ("paused", ["queue", "faxes"])
    assert await app.tenants.apurge("acme", reason="they left") == 1
    assert await app.tenants.aforget("acme", reason="they left") == 1
    assert (await app.tenants.areset("acme")).weight == 3
    assert (await app.tenants.aget("globex")).counts["faxes"][State.READY] == 1


# ── schemas ──────────────────────────────────────────────────────────────────


def many(
    *,
    a: str,
    b: int,
    c: float,
    d: bool,
    e: list[int],
    f: dict[str, Any],
    g: int | None,
    h: datetime,
    i: Any,
    j: list,  # type: ignore[type-arg]
    k: Literal[1, "x"],
    m: str | date = "",
) -> None:
    """Take one of each; its hints are what is tested."""


FITS: list[tuple[str, list[Any], list[Any]]] = [
    ("a", ["", "x"], [1, None, b"x", True, datetime.now(UTC)]),
    ("b", [0, -1], [1.0, True, "1"]),
    ("c", [1.5, 1], [True, "1"]),
    ("d", [True, False], [0, 1, "true"]),
    ("e", [[], [1, 2]], [["1"], (1, 2), "12", {}]),
    ("f", [{}, {"a": object}], [[], "x"]),
    ("g", [1, None], ["1", 1.5]),
    ("h", [datetime.now(UTC), "2026-07-01T10:00:00Z"], ["anything", None, "2026-07-01T10:00:00", 1]),
    ("i", [object, 1], []),
    ("j", [[1, "x"]], [{}]),
    ("k", [1, "x"], [True, 1.0, "y"]),
    ("m", ["x", date(2026, 1, 1)], [5]),
]


@pytest.mark.parametrize(("name", "good", "bad"), FITS, ids=[name for name, _, _ in FITS])
def test_a_schema_holds_arguments_to_their_hints(name: str, good: list[Any], bad: list[Any]) -> None:
    """By JSON's own types, and by the forms of text for what it has no type for."""
    schema = schema_of(Handler(many, "many"))
    schema = {**schema, "required": []}
    for value in good:
        problems = ProblemList(0)
        read_arguments(problems, {name: value}, schema, {})
        assert problems.found == [], value
    for value in bad:
        problems = ProblemList(0)
        read_arguments(problems, {name: value}, schema, {})
        assert len(problems.found) == 1, value
        assert problems.found[0].field.startswith(f"arguments.{name}")


def test_a_schema_says_which_arguments_are_needed() -> None:
    """Those without a default."""
    schema = schema_of(Handler(send, "send"))
    assert schema == {
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "pages": {"type": "integer"},
            "mode": {"enum": ["fast", "slow"]},
            "day": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        },
        "required": ["to"],
        "additionalProperties": False,
    }


def test_a_schema_that_says_nothing_allows_everything() -> None:
    """As published by a worker that knows none."""
    problems = ProblemList(0)
    read_arguments(problems, {"any": object}, {}, {})
    assert problems.found == []
