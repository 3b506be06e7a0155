"""A Valkey server that a test may stop, flush and look into, and a world on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from redis import Redis

from fairlane.store.opening import open_store
from tests.contract.world import World
from tests.oracle.clock import DrivenClock
from tests.servers.valkey import MEMORY, ValkeyServer


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    """Start a server that has written down what it acknowledges."""
    server = ValkeyServer("--appendonly", "yes", "--appendfsync", "always", folder=MEMORY)
    server.start()
    yield server
    server.remove()


@pytest.fixture
def client(server: ValkeyServer) -> Iterator[Redis]:
    """A client of the server that does not go through the store."""
    with Redis.from_url(server.url) as client:
        yield client


@pytest.fixture
async def world(server: ValkeyServer) -> AsyncIterator[World]:
    """Open a store there; the books must balance at the end."""
    clock = DrivenClock()
    store = open_store(server.url, clock=clock)
    world = World(store, clock)
    yield world
    await world.check_invariants()
    await store.upkeep.aclose()
