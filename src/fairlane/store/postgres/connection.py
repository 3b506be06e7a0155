"""Connect to the server: bounded pools, settings of every connection, clear errors during an outage.

A pool belongs to one event loop and one process; a fork or another loop gets its own. Knows no table.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final, Protocol, TypeAlias

import asyncpg

from fairlane.model.errors import StoreBusy, StoreError, StoreUnavailable
from fairlane.model.instants import Instant
from fairlane.store.postgres.errors import (
    DRIVER_ERRORS,
    LOCK_SECONDS,
    STATEMENT_SECONDS,
    is_mistake,
    translated,
)
from fairlane.store.postgres.location import Location
from fairlane.store.postgres.migrating import verify
from fairlane.store.postgres.wake import Wake
from fairlane.store.receive_buffer import receive_into_one_buffer

Connection: TypeAlias = "asyncpg.pool.PoolConnectionProxy"
"""What a transaction has: fetch, fetchrow, fetchval, execute."""

CONNECT_SECONDS: Final = 5.0
_CLOSE_SECONDS: Final = 5.0
_DEFAULT_POOL: Final = 2
"""Connections of an event loop, unless the URL or a worker asks for more."""
_MAX_QUERIES_PER_CONNECTION: Final = 10_000_000

_ALWAYS: Final = {"application_name": "fairlane"}
_ISOLATION: Final = {"default_transaction_isolation": "read committed"}
_IN_SESSION: Final = {
    "jit": "off",  # compiling costs more than any statement here takes
    "enable_seqscan": "off",  # a plan made while a table was empty is still used when it is full
    "lock_timeout": f"{LOCK_SECONDS}s",
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "idle_in_transaction_session_timeout": "60s",
}
"""Set once for a session; behind a pooler, which changes sessions, for each transaction."""

# The lock of a queue needs later snapshots, whatever the role's own default is.
_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
_BEGIN_POOLED: Final = "; ".join(
    (_BEGIN, *(f"SET LOCAL {name} = '{value}'" for name, value in _IN_SESSION.items()))
)


class StatementRunner(Protocol):
    """A way to run statements in one transaction: the store's own connection, or an application's."""

    async def fetch(self, statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Run one statement and return its rows."""
        ...


class Server:
    """One installation in a database, as verbs reach it: connections, the clock, wake-up hints."""

    def __init__(self, location: Location, clock: Callable[[], Instant] | None = None) -> None:
        """Connect to nothing yet. Only tests pass a clock."""
        self.location = location
        self.schema = location.schema
        self.wake = Wake(location.schema, self)
        self._clock = clock
        self._pool_size = location.pool or _DEFAULT_POOL
        self._pid = os.getpid()
        self._pools: dict[asyncio.AbstractEventLoop, asyncpg.Pool] = {}
        self._inherited: list[asyncpg.Pool] = []

    def now(self) -> Instant | None:
        """Return the time of the test's clock; None: the server's own clock counts."""
        return None if self._clock is None else self._clock()

    async def fetch(self, statement: str, *values: Any) -> list[asyncpg.Record]:
        """Run one statement as its own transaction and return its rows."""
        async with self._alone() as connection:
            rows: list[asyncpg.Record] = await connection.fetch(statement, *values)
            return rows

    async def value(self, statement: str, *values: Any) -> Any:
        """Run one statement as its own transaction and return the first value of its first row, or None."""
        async with self._alone() as connection:
            return await connection.fetchval(statement, *values)

    def transaction(self) -> AbstractAsyncContextManager[Connection]:
        """Return a connection with a transaction, committed at the end; anything raised inside rolls it back.

        `CommitUnknown` if the connection was lost while it committed.
        """
        return self._transaction()

    async def expect(self, connections: int) -> None:
        """Let this loop have this many connections from its next pool on, unless the URL says how many.

        A smaller pool that exists is replaced if nobody uses it; it cannot be closed under its users.
        """
        if self.location.pool is not None:
            return
        is_larger, self._pool_size = connections > self._pool_size, connections
        pool = self._pools.get(asyncio.get_running_loop())
        if is_larger and pool is not None and pool.get_idle_size() == pool.get_size():
            await self._end_pool()

    def hint(self, queues: Iterable[str] = (), workers: Iterable[str] = ()) -> None:
        """Wake workers that wait, after a commit. Never waits, never fails."""
        self.wake.send(queues, workers)

    @asynccontextmanager
    async def apart(self) -> AsyncIterator[asyncpg.Connection]:
        """Open a connection outside the pool, whatever state the schema is in; for migrations."""
        async with self._translating():
            connection = await asyncpg.connect(**self._arguments())
        try:
            async with self._translating(was_sent=True):
                yield connection
        finally:
            with suppress(*DRIVER_ERRORS):
                await connection.close(timeout=_CLOSE_SECONDS)

    async def close(self) -> None:
        """Send pending hints and close this loop's connections; those that hang are cut."""
        try:
            await self.wake.close()
        finally:
            await self._end_pool()

    async def _end_pool(self) -> None:
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is None or self._pid != os.getpid():
            return
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await pool.close()
        except (TimeoutError, *DRIVER_ERRORS):
            pool.terminate()

    # ── hints ─────────────────────────────────────────────────────────────────

    async def lend_listener(self) -> Any:
        """Lend a connection of the pool to listen on; None behind a pooler, or if it is the only one."""
        if self.location.is_pooled or self._pool_size == 1:
            return None
        return await self._acquired(await self._pool())

    async def return_listener(self, listener: Any) -> None:
        """Take it back into the pool."""
        await (await self._pool()).release(listener, timeout=LOCK_SECONDS)

    async def notify(self, channel: str, payload: str) -> None:
        """Send a NOTIFY; it may get lost."""
        with suppress(StoreError):
            await self.fetch("SELECT pg_notify($1, $2)", channel, payload)

    # ── connections ───────────────────────────────────────────────────────────

    def _arguments(self) -> dict[str, Any]:
        is_pooled = self.location.is_pooled
        return {
            "dsn": self.location.dsn,
            "timeout": CONNECT_SECONDS,
            # A little later than the server's own timeout: only the server knows whether it was done.
            "command_timeout": STATEMENT_SECONDS + 1,
            "server_settings": _ALWAYS if is_pooled else {**_ALWAYS, **_ISOLATION, **_IN_SESSION},
            "statement_cache_size": 0 if is_pooled else 200,
            "max_cached_statement_lifetime": 0,
        }

    async def _pool(self) -> asyncpg.Pool:
        loop = asyncio.get_running_loop()
        if self._pid != os.getpid():
            # The sockets belong to the parent, too: closing them properly would end its sessions.
            self._inherited += self._pools.values()
            self._pools, self._pid = {}, os.getpid()
        if loop not in self._pools:
            self._pools = {known: pool for known, pool in self._pools.items() if not known.is_closed()}
            # With no connection at the start nothing is awaited here, so no other task can come between.
            self._pools[loop] = await asyncpg.create_pool(
                **self._arguments(),
                min_size=0,
                max_size=self._pool_size,
                max_queries=_MAX_QUERIES_PER_CONNECTION,
                init=self._prepare,
                reset=_no_reset,
            )
        return self._pools[loop]

    async def _prepare(self, connection: asyncpg.Connection) -> None:
        receive_into_one_buffer(connection._transport)  # noqa: SLF001 (the driver shows it nowhere else)
        await verify(connection, self.location)

    async def _acquired(self, pool: asyncpg.Pool) -> Connection:
        """Take a connection from the pool; `StoreBusy` if none is free in time."""
        async with self._translating():
            try:
                return await pool.acquire(timeout=LOCK_SECONDS)
            except TimeoutError:
                if pool.get_size() < pool.get_max_size():
                    raise
                number = pool.get_max_size()
                message = f"{self.location.place}: all {number} connections of the pool are in use"
                raise StoreBusy(message) from None

    @asynccontextmanager
    async def _lent(self) -> AsyncIterator[Connection]:
        pool = await self._pool()
        connection = await self._acquired(pool)
        try:
            yield connection
        except StoreUnavailable:
            with suppress(*DRIVER_ERRORS):
                connection.terminate()  # the driver may not know yet that it is gone
            raise
        finally:
            # The driver cuts a connection that cannot be cleaned up; the verb has its answer already.
            with suppress(*DRIVER_ERRORS):
                await pool.release(connection, timeout=LOCK_SECONDS)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[Connection]:
        """Lend a connection for one statement that commits by itself.

        Behind a pooler it still needs a transaction, which alone carries our settings there.
        """
        if self.location.is_pooled:
            async with self._transaction() as connection:
                yield connection
        else:
            async with self._lent() as connection, self._translating(was_sent=True):
                yield connection

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        async with self._lent() as connection:
            async with self._translating():
                await connection.execute(_BEGIN_POOLED if self.location.is_pooled else _BEGIN)
                try:
                    yield connection
                except BaseException:
                    with suppress(*DRIVER_ERRORS):  # the connection is gone, and the transaction with it
                        await connection.execute("ROLLBACK")
                    raise
            async with self._translating(was_sent=True):
                await connection.execute("COMMIT")

    @asynccontextmanager
    async def _translating(self, *, was_sent: bool = False) -> AsyncIterator[None]:
        try:
            yield
        except DRIVER_ERRORS as error:
            if is_mistake(error):
                raise
            if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
                await self._reconnect()
            raise translated(error, self.location.place, was_sent=was_sent) from error

    async def _reconnect(self) -> None:
        """Use none of the pool's connections again: they lead to a server that no longer takes writes."""
        pool = self._pools.get(asyncio.get_running_loop())
        if pool is not None:
            await pool.expire_connections()


async def _no_reset(_: asyncpg.Connection) -> None:
    """Reset nothing when a connection comes back: verbs set nothing that outlives their transaction."""
