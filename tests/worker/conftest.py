"""Provide a world for each test, and leave nothing running after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import wraps
from inspect import iscoroutinefunction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from fairlane import Fairlane
from tests.stores import MEMORY
from tests.worker.world import World

TOO_LONG = 60.0
"""Seconds after which a test that waits for an event fails, so that it cannot hang."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bound every wait of the tests in this folder."""
    here = Path(__file__).parent
    for item in items:
        if isinstance(item, pytest.Function) and item.path.parent == here and iscoroutinefunction(item.obj):
            item.obj = _bounded(item.obj)


def _bounded(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @wraps(test)
    async def bounded(*args: Any, **named: Any) -> None:
        async with asyncio.timeout(TOO_LONG):
            await test(*args, **named)

    return bounded


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """An empty file, and applications that are closed afterwards."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        made = World(Path(folder))
        yield made
        made.is_over = True
        for app in made.apps:
            await app.aclose()


@pytest.fixture
def app(world: World) -> Fairlane:
    """An application without declarations."""
    return world.app()
