"""Fixtures: an application on an empty oracle store for every test, closed afterwards."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from fairlane import Fairlane
from tests.app.world import World


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
