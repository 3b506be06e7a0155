"""A world on a new file for each test; the store's books must balance at the end of every one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.acceptance.crew import Crew
from tests.acceptance.working import Stage
from tests.acceptance.world import World
from tests.invariants import check
from tests.stores import MEMORY


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """An empty file and nobody at work."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        made = World(Path(folder))
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


@pytest.fixture
async def crew() -> AsyncIterator[Crew]:
    """A folder for worker processes; nobody of them is left at the end, and the books balance."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        made = Crew(Path(folder))
        try:
            yield made
            made.end()
            await check(made.app.client.store)
        finally:
            made.end()
            await made.app.aclose()
