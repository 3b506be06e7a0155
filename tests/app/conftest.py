"""Fixtures: a world, an application and a task for every test, closed afterwards."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from fairlane import Fairlane, Task
from tests.app.world import World, note


@pytest.fixture
def world() -> Generator[World]:
    """An empty store, and applications that are closed afterwards."""
    made = World()
    yield made
    for app in made.apps:
        app.close()


@pytest.fixture
def app(world: World) -> Fairlane:
    """An application with open tenancy on the watched store."""
    return world.app()


@pytest.fixture
def task(app: Fairlane) -> Task[..., None]:
    """A task that takes anything, for tenant acme."""
    return app.task(name="note")(note).using(tenant="acme")
