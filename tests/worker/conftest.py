"""Give every test a world of its own, and leave nothing running behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fairlane import Fairlane
from tests.stores import MEMORY
from tests.worker.world import World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """An empty file, and applications that are closed afterwards."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        made = World(Path(folder))
        yield made
        for app in made.apps:
            await app.aclose()


@pytest.fixture
def app(world: World) -> Fairlane:
    """An application without declarations."""
    return world.app()
