"""The stores that the suite runs on, each opened empty and with a driven clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from tempfile import TemporaryDirectory
from typing import TypeAlias

from fairlane.store.contract import Store
from fairlane.store.opening import open_store
from tests.oracle.clock import DrivenClock
from tests.oracle.store import OracleStore
from tests.servers import schemas, valkey
from tests.servers.postgres import MEMORY

__all__ = ["MEMORY", "STORES", "Opener"]

Opener: TypeAlias = Callable[[DrivenClock], AbstractAsyncContextManager[Store]]


@asynccontextmanager
async def open_oracle(clock: DrivenClock) -> AsyncIterator[Store]:
    """Open the oracle."""
    store = OracleStore(clock)
    yield store
    await store.upkeep.aclose()


@asynccontextmanager
async def open_sqlite(clock: DrivenClock) -> AsyncIterator[Store]:
    """Open the SQLite store on a new file, in a RAM disk if the machine has one."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        store = open_store(f"sqlite:///{folder}/fairlane.db", clock=clock)
        try:
            yield store
        finally:
            await store.upkeep.aclose()


@asynccontextmanager
async def open_postgres(clock: DrivenClock) -> AsyncIterator[Store]:
    """Open the PostgreSQL store on an empty schema of a private server."""
    async with schemas.lent_store(clock) as store:
        yield store


@asynccontextmanager
async def open_redis(clock: DrivenClock) -> AsyncIterator[Store]:
    """Open the Redis store under a new prefix of a private Valkey server."""
    async with valkey.lent_prefix() as prefix:
        store = open_store(valkey.url_of(prefix), clock=clock)
        try:
            yield store
        finally:
            await store.upkeep.aclose()


STORES: dict[str, Opener] = {
    "oracle": open_oracle,
    "postgres": open_postgres,
    "redis": open_redis,
    "sqlite": open_sqlite,
}
"""Name to opener. A new store is added here and nowhere else; every test then runs on it, too."""
