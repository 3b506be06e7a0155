"""Give every test a world of its own, and leave nothing running behind it."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.app.world import World


@pytest.fixture
def world() -> Generator[World]:
    """An empty store, and applications that are closed afterwards."""
    made = World()
    yield made
    for app in made.apps:
        app.close()
