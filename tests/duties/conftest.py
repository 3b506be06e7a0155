"""Give every duty a world around an empty store, for each store there is."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.contract.world import World
from tests.oracle.clock import DrivenClock
from tests.stores import STORES


@pytest.fixture(params=sorted(STORES))
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Open one store, empty, and close it afterwards; the books must balance at the end of every test."""
    clock = DrivenClock()
    async with STORES[request.param](clock) as store:
        world = World(store, clock)
        yield world
        await world.check_invariants()
