"""Open a store of each kind, with a damage to do to it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.contract.world import World
from tests.oracle.clock import DrivenClock
from tests.repair.damage import DAMAGES
from tests.stores import STORES

CASES = [(store, which) for store, damages in sorted(DAMAGES.items()) for which in damages]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}".replace(" ", "-"))
def case(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Name a store and a damage."""
    found: tuple[str, str] = request.param
    return found


@pytest_asyncio.fixture(loop_scope="session")
async def world(case: tuple[str, str], shared_connections: None) -> AsyncIterator[World]:
    """Open the store, empty; the books must balance at the end of every test."""
    clock = DrivenClock()
    async with STORES[case[0]](clock) as store:
        world = World(store, clock)
        yield world
        await world.check_invariants()
