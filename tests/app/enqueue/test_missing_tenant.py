"""An enqueue without a tenant is allowed under open tenancy, and warned about once per task (S10)."""

from __future__ import annotations

import pytest

from fairlane import Fairlane, Outbox, StoreUnavailable, Task
from tests.app.world import World, note


@pytest.fixture
def task(app: Fairlane) -> Task[..., None]:
    """A task that takes anything."""
    return app.task(name="note")(note)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Name the tasks that were told of, in order."""
    records = [record.__dict__ for record in caplog.records]
    return [str(one["task"]) for one in records if one.get("event") == "tenant_not_named"]


def test_it_is_told_once_a_task_where_others_are_known_to_the_application(
    world: World, app: Fairlane, task: Task[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """What it enqueues for others is enough to know; the store is not asked for it."""
    other = app.task(name="other")(note)
    task.using(tenant="acme").enqueue("x")
    for _ in range(3):
        task.enqueue("x")
    app.enqueue_many([task.bind("x"), other.bind("x"), other.bind("x")])
    assert told(caplog) == ["note", "other"]
    assert "name one with using(tenant=...)" in caplog.text
    assert '"required"' in caplog.text
    assert world.verbs() == ["enqueue"] * 5


def test_it_is_told_where_the_store_knows_others(
    world: World, task: Task[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """A program that forgets every tenant hears of it too; the store is asked once."""
    world.app().task(name="elsewhere")(note).using(tenant="acme").enqueue("x")
    for _ in range(3):
        task.enqueue("x")
    assert told(caplog) == ["note"]
    assert world.verbs().count("list") == 1


def test_an_application_without_tenants_hears_nothing_and_asks_once_a_task(
    world: World, app: Fairlane, task: Task[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """`system` is then the only tenant there is; until there is another."""
    for _ in range(3):
        task.enqueue("x")
    assert told(caplog) == []
    assert world.verbs().count("list") == 1
    with app.tenant("acme"):
        task.enqueue("x")
    assert told(caplog) == []
    task.enqueue("x")
    assert told(caplog) == ["note"]
    assert world.verbs().count("list") == 1


def test_who_names_system_or_declares_it_meant_it(
    world: World, app: Fairlane, task: Task[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """And who is inside a tenant has named it."""
    sweep = app.task(name="sweep", system=True)(note)
    task.using(tenant="acme").enqueue("x")
    task.using(tenant="system").enqueue("x")
    sweep.enqueue("x")
    with app.tenant("acme"):
        task.enqueue("x")
    assert told(caplog) == []
    assert "list" not in world.verbs()


def test_a_store_that_cannot_be_asked_changes_nothing(
    world: World, task: Task[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """The job is stored; a remark is worth no error."""
    world.fail_before = [None, StoreUnavailable("away")]
    assert task.enqueue("x").created
    assert world.verbs() == ["enqueue", "list"]
    assert told(caplog) == []


def test_the_outbox_tells_of_it_too(
    app: Fairlane, task: Task[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """It asks no store, so it tells what the application knows."""
    outbox = Outbox(app)
    outbox.statements([task.bind("x")])
    assert told(caplog) == []
    task.using(tenant="acme").enqueue("x")
    outbox.statements([task.bind("x")])
    assert told(caplog) == ["note"]
