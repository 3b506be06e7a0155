"""What holds for every test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings

from tests.servers.schemas import close_kept, keep

# Both would judge the machine: how long a case took, and how long it took to draw it.
settings.register_profile(
    "fairlane", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fairlane")

_CONTRACT: Final = Path(__file__).parent / "contract"
_ONE_LOOP: Final = {_CONTRACT, Path(__file__).parent / "duties"}
"""The folders whose tests run in one event loop: connections to servers live no longer than theirs."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests of some folders share an event loop, and begin no long test at the end.

    The contract's are thousands, and short: whichever worker is free takes some, until both are done.
    """
    items.sort(key=lambda item: item.path.parent == _CONTRACT)
    in_one_loop = pytest.mark.asyncio(loop_scope="session")
    for item in items:
        is_async = isinstance(item, pytest.Function) and iscoroutinefunction(item.obj)
        if is_async and item.path.parent in _ONE_LOOP:
            item.add_marker(in_one_loop, append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def kept() -> AsyncIterator[None]:
    """Let stores leave their connections to the next test; the last one closes them."""
    await keep()
    yield
    await close_kept()
