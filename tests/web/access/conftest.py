"""Passwords that are cheap to hash, and an application on each kind of store with one user."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from fairlane import Fairlane
from tests.app.access.conftest import cheap_passwords
from tests.app.world import World
from tests.stores import STORES
from tests.web.access.visitor import PASSWORD, on_store

__all__ = ["cheap_passwords"]


@pytest.fixture
async def app(world: World) -> AsyncIterator[Fairlane]:
    """An application in memory with one user: ann, an operator."""
    made = world.app()
    await made.users.aadd("ann", password=PASSWORD, role="operator")
    yield made
    await made.aclose()


@pytest.fixture(params=sorted(set(STORES) - {"oracle"}))
async def stored(request: pytest.FixtureRequest) -> AsyncIterator[Fairlane]:
    """The same on SQLite, PostgreSQL and Redis."""
    async with on_store(request.param) as (made, _):
        yield made
