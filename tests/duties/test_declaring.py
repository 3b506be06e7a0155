"""A scheduler with an application declares its schedules when it starts, or as soon as the store answers."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from fairlane import ConfigError, StoreUnavailable
from fairlane.duties.command import _declare
from fairlane.duties.duties import log
from fairlane.runtime.outage import StoreOutage
from tests.app.world import World, note


@pytest.fixture
def world() -> Generator[World]:
    """An empty store."""
    made = World()
    yield made
    for app in made.apps:
        app.close()


def outage() -> StoreOutage:
    """Return what counts tries, for nobody in particular."""
    return StoreOutage(log, "s1", lambda: None)


async def test_a_scheduler_declares_once(world: World) -> None:
    """What is repeated afterwards ends at once."""
    app = world.app(config={})
    app.schedule("@daily", name="nightly")(app.task(name="note")(note))
    again = await _declare(app.client, outage())
    assert (await app.schedules.aget("nightly")).declared
    asked = len(world.asked)
    assert await again() is None
    assert len(world.asked) == asked


async def test_a_scheduler_declares_when_the_store_is_back(world: World) -> None:
    """Until then it goes on without."""
    app = world.app(config={})
    app.schedule("@daily", name="nightly")(app.task(name="note")(note))
    world.fail_before = [StoreUnavailable("away"), StoreUnavailable("away")]
    again = await _declare(app.client, outage())
    assert await again() is not None
    assert await again() is None
    assert (await app.schedules.aget("nightly")).declared


async def test_wrong_schedules_are_refused_at_once(world: World) -> None:
    """A scheduler does not start with them."""
    app = world.app(config={"schedules": {"nightly": {"task": "nobody", "cron": "@daily"}}})
    app.task(name="note")(note)
    with pytest.raises(ConfigError, match="no worker has published a task 'nobody'"):
        await _declare(app.client, outage())
