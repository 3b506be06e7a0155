"""The stores that the suite runs on, each opened empty and with a clock that tests drive."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

from fairlane.store.contract import Store
from tests.oracle.clock import DrivenClock
from tests.oracle.store import OracleStore

Opener: TypeAlias = Callable[[DrivenClock], AbstractAsyncContextManager[Store]]


@asynccontextmanager
async def open_oracle(clock: DrivenClock) -> AsyncIterator[Store]:
    """Open the oracle."""
    store = OracleStore(clock)
    yield store
    await store.upkeep.aclose()


STORES: dict[str, Opener] = {"oracle": open_oracle}
"""Name to opener. A new store is added here and nowhere else; every test then runs on it, too."""
