"""Fixtures: an application on an empty store in memory, and callers of its REST API."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from fairlane import Fairlane
from tests.app.world import World, note
from tests.web.api.callers import Callers


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """An empty store; its applications are closed afterwards."""
    made = World()
    yield made
    for app in made.apps:
        await app.aclose()


@pytest.fixture
def app(world: World) -> Fairlane:
    """An application with one task."""
    made = world.app()
    made.task(name="mail.send", sensitive=("text",))(note)
    return made


@pytest.fixture
def callers(app: Fairlane) -> Callers:
    """Callers of its REST API."""
    return Callers(app)
