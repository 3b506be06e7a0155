"""Settings and hooks of all tests."""

from __future__ import annotations

import os
import traceback
from collections.abc import AsyncIterator
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings

from tests.servers.schemas import close_shared_connections, share_connections

# Both would judge the machine: how long a case took, and how long it took to draw it.
settings.register_profile(
    "fairlane", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fairlane")

_CONTRACT: Final = Path(__file__).parent / "contract"
_ONE_LOOP: Final = {_CONTRACT, Path(__file__).parent / "duties", Path(__file__).parent / "browser"}
"""The folders whose tests run in one event loop: connections to servers live no longer than theirs."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests of some folders share an event loop, and run the contract suite last.

    It has thousands of short tests, which keep all test processes busy to the end.
    """
    items.sort(key=lambda item: _CONTRACT in item.path.parents)
    in_one_loop = pytest.mark.asyncio(loop_scope="session")
    for item in items:
        is_async = isinstance(item, pytest.Function) and iscoroutinefunction(item.obj)
        if is_async and not _ONE_LOOP.isdisjoint(item.path.parents):
            item.add_marker(in_one_loop, append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_connections() -> AsyncIterator[None]:
    """Let stores keep their connections for the next test; close them at the end."""
    await share_connections()
    yield
    await close_shared_connections()


def _connected(self: asyncpg.Connection, *given: Any, **named: Any) -> None:
    _connect(self, *given, **named)
    stack = "".join(traceback.format_stack(limit=16))
    self._source_traceback = f"{os.environ.get('PYTEST_CURRENT_TEST')}\n{stack}"


# A connection that nobody closes is noticed when it is collected, in the middle of some later test: its
# warning names the test that opened it.
_connect: Final = asyncpg.connection.Connection.__init__
asyncpg.connection.Connection.__init__ = _connected
