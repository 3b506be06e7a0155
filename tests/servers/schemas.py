"""Lend empty, migrated schemas of the tests' PostgreSQL database: making one for each would take too long.

So would opening connections for each: what a server's process learns of a schema costs it more than most
tests do. Tests that share an event loop share connections, too (`lent_store`).
"""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from itertools import count
from typing import Final

import asyncpg
import psycopg

from fairlane.store.opening import open_store
from fairlane.store.postgres.store import PostgresStore
from tests.oracle.clock import START, DrivenClock
from tests.servers.postgres import shared_url

_free: Final[list[str]] = []
_numbers: Final = count(1)
_pools: Final[dict[str, tuple[asyncio.AbstractEventLoop, asyncpg.Pool]]] = {}
"""Connections to schemas that nobody has at the moment, and the loop they belong to."""

_lasting: Final[set[asyncio.AbstractEventLoop]] = set()
"""The loops that outlive a test, and will say when they end."""

# What tests have left behind, and days of history that only some of them make or take away. The locks wait
# for what was under way when a connection was cut or a process killed: the server goes on and commits it.
_EMPTY: Final = """
DO $$
DECLARE name text;
BEGIN
  EXECUTE 'LOCK TABLE ' || (SELECT string_agg(c.oid::regclass::text, ', ' ORDER BY relname) FROM pg_class c
                            WHERE relnamespace = '{s}'::regnamespace AND relkind IN ('r', 'p'));
  FOR name IN SELECT c.oid::regclass::text FROM pg_class c
              WHERE relnamespace = '{s}'::regnamespace AND relkind = 'r' AND relname <> 'meta'
  LOOP EXECUTE 'DELETE FROM ' || name; END LOOP;
  FOR name IN SELECT day::text FROM {s}.history_days() WHERE until <= {now} OR since > {now} + 2 * 86400000000
  LOOP EXECUTE 'DROP TABLE ' || name; END LOOP;
  PERFORM {s}.create_history_days({now});
  DELETE FROM {s}.meta WHERE meta.name NOT IN ('schema', 'serves', 'functions', 'release');
END $$
"""


def url_of(schema: str) -> str:
    """Return the URL of one schema of the tests' database."""
    url = shared_url()
    return f"{url}{'&' if '?' in url else '?'}schema={schema}"


@asynccontextmanager
async def lent_schema() -> AsyncIterator[str]:
    """Lend a schema that is migrated and empty, as long as this lasts."""
    schema = _free.pop() if _free else await _new()
    try:
        yield schema
    finally:
        # One that somebody still works in is left to him: the next test gets another.
        with suppress(psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            _admin().execute(_EMPTY.replace("{s}", schema).replace("{now}", str(START)).encode())
            _free.append(schema)


@asynccontextmanager
async def lent_store(clock: DrivenClock) -> AsyncIterator[PostgresStore]:
    """Lend a new store on such a schema, with the connections that others of this loop have left behind."""
    async with lent_schema() as schema:
        store = PostgresStore(url_of(schema), clock.now)
        loop = asyncio.get_running_loop()
        if schema in _pools and _pools[schema][0] is loop:
            store._server._pools[loop] = _pools.pop(schema)[1]
        try:
            yield store
        finally:
            await store._server.wake.close()
            pool = store._server._pools.get(loop)
            if loop in _lasting and pool is not None and pool.get_idle_size() == pool.get_size():
                _pools[schema] = loop, store._server._pools.pop(loop)
            await store.upkeep.aclose()


async def share_connections() -> None:
    """Let stores of this loop leave their connections to the next, until `close_shared_connections`."""
    _lasting.add(asyncio.get_running_loop())


async def close_shared_connections() -> None:
    """Close what this loop's stores have left behind."""
    here = asyncio.get_running_loop()
    _lasting.discard(here)
    for schema, (loop, pool) in tuple(_pools.items()):
        if loop is here:
            del _pools[schema]
            await pool.close()


@cache
def _admin() -> psycopg.Connection:
    """Keep one connection for all tests of the process, which have a loop each."""
    connection = psycopg.connect(shared_url(), autocommit=True, options="-c lock_timeout=5s")
    atexit.register(connection.close)
    return connection


async def _new() -> str:
    schema = f"test_{os.getpid()}_{next(_numbers)}"
    _admin().execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())
    store = open_store(url_of(schema), clock=DrivenClock())
    try:
        await store.upkeep.migrate()
    finally:
        await store.upkeep.aclose()
    return schema
