"""A worker that does the duties runs the jobs of its subscribers: from the cause to the handler (S77)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from fairlane import Context, EventData, Fail, Fairlane, current_tenant
from tests.worker.world import World, events, until


async def test_a_death_runs_the_subscriber_of_dead_letters(world: World, app: Fairlane) -> None:
    """Async, with its context, in the tenant `system`."""
    heard: list[tuple[str, EventData]] = []

    @app.on_event("dead_letter", name="page", queue="pages")
    async def page(ctx: Context, event: EventData) -> None:
        heard.append((ctx.tenant, event))

    @app.task(name="work")
    async def work() -> None:
        raise Fail("hopeless")

    async with world.working(app):
        job = await work.using(tenant="acme", created_by="ann").aenqueue()
        await until(lambda: bool(heard))
    ((tenant, event),) = heard
    assert (tenant, event["kind"], event["tenant"], event["count"]) == ("system", "dead_letter", "acme", 1)
    assert (event["body"]["job"], event["body"]["created_by"]) == (str(job.id), "ann")


async def test_a_plain_subscriber_may_act_for_every_tenant(world: World, app: Fairlane) -> None:
    """It is told of all tenants, so it may look at their jobs."""
    found: list[tuple[str, str]] = []

    @app.on_event("dead_letter", name="page")
    def page(event: dict[str, Any]) -> None:
        job = app.jobs.get(event["body"]["job"])
        found.append((current_tenant(), job.tenant))

    @app.task(name="work")
    async def work() -> None:
        raise Fail("hopeless")

    async with world.working(app):
        await work.using(tenant="acme").aenqueue()
        await until(lambda: bool(found))
    assert found == [("system", "acme")]


async def test_a_subscriber_of_another_application_is_told(world: World, app: Fairlane) -> None:
    """Who leads knows its task by what its worker has published."""
    heard = asyncio.Event()
    other = world.app(name="other")

    @other.on_event("dead_letter", name="other.page", queue="others")
    async def page(event: EventData) -> None:
        heard.set()

    @app.task(name="work")
    async def work() -> None:
        raise Fail("hopeless")

    async with world.working(app), world.working(other, duties=False):
        await work.using(tenant="acme").aenqueue()
        await heard.wait()


async def test_a_subscriber_that_raises_is_retried_and_its_death_is_not_its_own_business(
    world: World, app: Fairlane
) -> None:
    """As any task; its dead letter is an event, but not one for itself."""
    tries: list[int] = []

    @app.on_event("dead_letter", name="page", max_attempts=2, retry_delay=lambda _error, _failures: 0)
    async def page(ctx: Context, event: EventData) -> None:
        tries.append(event["number"])
        raise ValueError(event["kind"])

    @app.task(name="work")
    async def work() -> None:
        raise Fail("hopeless")

    async with world.working(app):
        await work.using(tenant="acme").aenqueue()
        await until(lambda: len(tries) == 2)
        await until(lambda: len(_told(world)) == 2)
    assert tries == [1, 1]


def _told(world: World) -> list[Any]:
    """Return the events that were numbered."""
    return [one for request in world.requests("number") for one in request.entries]


async def test_a_worker_says_once_that_the_audit_has_no_key(
    world: World, app: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    """And nothing of the kind when there is one."""
    keyed = world.app(name="keyed", config={"audit": {"key": "0123456789abcdef"}})
    with caplog.at_level(logging.INFO, "fairlane.duties"):
        async with world.working(app, duties=True):
            await until(lambda: "audit_without_key" in events(caplog))
        caplog.clear()
        async with world.working(keyed, duties=True):
            await until(lambda: "lead_taken" in events(caplog))
    assert "audit_without_key" not in events(caplog)
    assert "0123456789abcdef" not in caplog.text
