"""A world on a new store for each test, of each kind; the books must balance at the end of every one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from tests.acceptance.crew import Crew
from tests.acceptance.working import Stage
from tests.acceptance.world import World
from tests.invariants import check
from tests.servers.postgres import MEMORY
from tests.servers.schemas import lent_schema, url_of


@asynccontextmanager
async def _on_a_file(folder: Path) -> AsyncIterator[str]:
    yield f"sqlite:///{folder}/fairlane.db"


@asynccontextmanager
async def _on_a_server(_: Path) -> AsyncIterator[str]:
    async with lent_schema() as schema:
        yield url_of(schema)


PLACES: Final[dict[str, Callable[[Path], AbstractAsyncContextManager[str]]]] = {
    "postgres": _on_a_server,
    "sqlite": _on_a_file,
}
"""Name to what makes an empty place for a store and gives its URL."""


@pytest.fixture(params=sorted(PLACES))
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """An empty store and nobody at work."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        async with PLACES[request.param](Path(folder)) as place:
            made = World(place, Path(folder))
            try:
                yield made
                if made.is_recounted:
                    await check(made.store)
            finally:
                await made.aclose()


@pytest.fixture
def stage() -> Stage:
    """An empty stage for handlers."""
    return Stage()


@pytest.fixture(params=sorted(PLACES))
async def crew(request: pytest.FixtureRequest) -> AsyncIterator[Crew]:
    """A folder for worker processes; nobody of them is left at the end, and the books balance."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        async with PLACES[request.param](Path(folder)) as place:
            made = Crew(place, Path(folder))
            try:
                yield made
                made.end()
                await check(made.app.client.store)
            finally:
                made.end()
                await made.app.aclose()
