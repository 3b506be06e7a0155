"""Declaring tasks that subscribe to events, and the job of one event (S77)."""

from __future__ import annotations

import inspect
import typing
from typing import Any
from uuid import UUID

import msgspec
import pytest

from fairlane import ConfigError, Context, EventData, Fairlane, Tasks
from fairlane.app.task.record import task_record_of
from fairlane.app.task.subscriber import KINDS, SubscriberOptions, event_data, event_job
from fairlane.model.journal.entries import Entry, NewEntry
from fairlane.model.journal.kinds import EventKind
from fairlane.model.payload.encoding import decode_arguments
from fairlane.store.contract.registry import TaskRecord

EVENT = Entry(7, 1_800_000_000_000_000, NewEntry(kind="dlq_alert", count=2, body=b'{"count":51}'))


async def page(ctx: Context, event: EventData) -> None:
    """Take an event, with the context."""


def log(what: dict[str, Any]) -> None:
    """Take an event as any dict."""


def record(task: Any, app: Fairlane) -> TaskRecord:
    """Return a task as a worker publishes it."""
    return task_record_of(task.declared, app.settings)


def test_a_subscriber_is_a_task_of_the_system_that_publishes_its_kinds() -> None:
    """With its own queue and the other options of a task."""
    app = Fairlane()
    task = app.on_event("dlq_alert", "job_stuck", "dlq_alert", name="page", queue="pages", max_attempts=9)(
        page
    )
    published = record(task, app)
    assert (published.name, published.queue, published.max_attempts) == ("page", "pages", 9)
    assert (published.events, published.system) == (("dlq_alert", "job_stuck"), True)
    assert record(app.task(name="work")(log), app).events == ()


def test_a_kind_may_be_named_by_its_member() -> None:
    """It is a text."""
    app = Fairlane()
    assert record(app.on_event(EventKind.JOB_STUCK, name="page")(page), app).events == ("job_stuck",)


def test_a_collection_of_tasks_may_have_subscribers() -> None:
    """Prefix and queue are those of its other tasks."""
    tasks, app = Tasks(prefix="ops.", queue="ops"), Fairlane()
    task = tasks.on_event("worker_lost", name="page")(page)
    app.include(tasks)
    assert (record(task, app).name, record(task, app).queue) == ("ops.page", "ops")
    assert app.registry.find("ops.page") is not None


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ((), "it names no kind of event"),
        (("dql_alert",), "'dql_alert' is not a kind of event; did you mean 'dlq_alert'?"),
        (("job_stuck", "cron"), "'cron' is not a kind of event"),
        ((5,), "5 is not a kind of event"),
        ((page,), "is not a kind of event"),
    ],
)
def test_an_unknown_kind_is_refused_with_the_list_of_kinds(kinds: tuple[Any, ...], message: str) -> None:
    """At the declaration, and a decorator without brackets is one of them."""
    with pytest.raises(ConfigError) as caught:
        Fairlane().on_event(*kinds)
    assert message in str(caught.value)
    assert (caught.value.key, caught.value.allowed) == ("on_event", ", ".join(KINDS))


def none() -> None:
    """Take no event."""


def two(event: EventData, more: int = 1) -> None:
    """Take more than the event."""


@pytest.mark.parametrize(("handler", "count"), [(none, 0), (two, 2)])
def test_a_subscriber_takes_the_event_and_nothing_else(handler: Any, count: int) -> None:
    """Nobody gives the rest."""
    with pytest.raises(ConfigError, match=f"takes {count} arguments; take the event only"):
        Fairlane().on_event("job_stuck", name="page")(handler)


def test_a_task_cannot_be_made_a_subscriber_as_well() -> None:
    """Nor can a subscriber subscribe twice: it names several kinds."""
    app = Fairlane()
    task = app.task(name="page")(page)
    with pytest.raises(ConfigError, match="it is a task already"):
        app.on_event("job_stuck")(task)  # type: ignore[call-overload]


def test_every_option_of_a_subscriber_is_one_of_a_task() -> None:
    """The types name exactly those that a subscriber may have."""
    overloads = typing.get_overloads(Tasks.task)
    known = {name for one in overloads for name in inspect.signature(one).parameters} - {"self", "fn"}
    assert known - set(SubscriberOptions.__annotations__) == {"system", "dedup_until", "category"}
    assert set(SubscriberOptions.__annotations__) <= known


# ── the job of an event ──────────────────────────────────────────────────────


def test_the_job_of_an_event_has_it_as_the_argument_of_the_handler() -> None:
    """Under the name that the handler gives it, as the types that it was made of."""
    app = Fairlane()
    job = event_job(UUID(int=1), EVENT, record(app.on_event("dlq_alert", name="log")(log), app))
    assert decode_arguments(job.payload) == {"what": event_data(EVENT)}
    assert (job.tenant, job.task, job.idempotency_key) == ("system", "log", "event:log:7")


def test_an_event_that_a_newer_version_made_is_told_as_well() -> None:
    """Its kind is not known here: it is a warning for operators."""
    newer = msgspec.structs.replace(EVENT, entry=NewEntry(kind="of a newer version", tenant="acme"))
    told = event_data(newer)
    assert (told["severity"], told["addressee"], told["tenant"]) == ("warning", "operators", "acme")


def test_a_repeat_is_recognised_however_the_event_is_encoded() -> None:
    """A leader of another version may say more about the same event."""
    app = Fairlane()
    task = record(app.on_event("dlq_alert", name="log")(log), app)
    other = msgspec.structs.replace(EVENT, entry=NewEntry(kind="dlq_alert", body=b'{"more":1}'))
    first, second = event_job(UUID(int=1), EVENT, task), event_job(UUID(int=2), other, task)
    assert (first.idempotency_key, first.fingerprint) == (second.idempotency_key, second.fingerprint)
    assert first.payload != second.payload
