"""A PostgreSQL store of its own for each test, on the tests' server or on one that a test may break."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import World
from tests.oracle.clock import DrivenClock
from tests.servers.postgres import PostgresServer, shared_url
from tests.servers.schemas import lent_schema, url_of


@pytest.fixture
async def schema() -> AsyncIterator[str]:
    """A migrated, empty schema of the tests' database."""
    async with lent_schema() as schema:
        yield schema


@pytest.fixture
async def store(schema: str) -> AsyncIterator[PostgresStore]:
    """A store on that schema, with the server's own clock."""
    store = PostgresStore(url_of(schema))
    yield store
    await store.upkeep.aclose()


@pytest.fixture
async def world(schema: str) -> AsyncIterator[World]:
    """A world on that schema; the books must balance at the end of every test."""
    clock = DrivenClock()
    store = PostgresStore(url_of(schema), clock.now)
    world = World(store, clock)
    try:
        yield world
        await world.check_invariants()
    finally:
        await store.upkeep.aclose()


@pytest.fixture
def admin() -> Iterator[psycopg.Connection]:
    """A connection that sees everything on the tests' server."""
    with psycopg.connect(shared_url(), autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def breakable() -> Iterator[PostgresServer]:
    """A server of the module's own, durable, that its tests may stop, kill and start again."""
    server = PostgresServer()
    server.start()
    yield server
    server.close()


@pytest.fixture
async def fragile(breakable: PostgresServer) -> AsyncIterator[PostgresStore]:
    """A migrated store on that server, by its port."""
    store = PostgresStore(breakable.tcp_url)
    await store.upkeep.migrate()
    yield store
    await store.upkeep.aclose()
