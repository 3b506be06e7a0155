"""A SQLite store on a file, and the application's own connection to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest

from fairlane.store.sqlite.store import SqliteStore
from tests.contract.world import World
from tests.oracle.clock import DrivenClock
from tests.stores import MEMORY


@pytest.fixture
def file() -> Iterator[Path]:
    """The path of a store's file, in memory where the machine allows it."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder) / "fairlane.db"


@pytest.fixture
async def world(file: Path) -> AsyncIterator[World]:
    """Open the store, empty; its counters must be exact at the end of every test."""
    clock = DrivenClock()
    store = SqliteStore(f"sqlite:///{file}", clock.now)
    world = World(store, clock)
    assert await world.find_all() == []  # the file exists from now on
    yield world
    await world.check_invariants()
    await store.upkeep.aclose()


@pytest.fixture
def own(world: World, file: Path) -> Iterator[apsw.Connection]:
    """The application's own connection, with a table of its own in the file."""
    connection = apsw.Connection(str(file))
    connection.execute("CREATE TABLE orders (name TEXT)")
    yield connection
    connection.close()
