"""The fixture of the suite: a world around an empty store, for each store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.contract.world import World
from tests.oracle.clock import DrivenClock
from tests.stores import STORES


@pytest_asyncio.fixture(params=sorted(STORES), loop_scope="session")
async def world(request: pytest.FixtureRequest, shared_connections: None) -> AsyncIterator[World]:
    """Open one empty store and close it afterwards; the invariants must hold at the end of every test."""
    clock = DrivenClock()
    async with STORES[request.param](clock) as store:
        world = World(store, clock)
        yield world
        await world.check_invariants()
