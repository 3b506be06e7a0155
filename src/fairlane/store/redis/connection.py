"""Open connections to a server: the pools of one event loop, and Sentinels. Knows no script and no key."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from fairlane.model.errors import ConfigError
from fairlane.store.receive_buffer import receive_into_one_buffer
from fairlane.store.redis.pipeline import send

if TYPE_CHECKING:
    from redis.asyncio import BlockingConnectionPool
    from redis.asyncio.connection import AbstractConnection
    from redis.driver_info import DriverInfo

TIMEOUT: Final = 5.0
"""Seconds that a call may take, and that a caller waits for a free connection."""

_MAX_CONNECTIONS: Final = 16


class Pools(NamedTuple):
    """The connections of one event loop to one server: for calls, and for calls that block."""

    url: str
    calls: BlockingConnectionPool
    blocking_calls: BlockingConnectionPool
    locks: defaultdict[str, asyncio.Lock]

    def lock(self, name: str | None) -> AbstractAsyncContextManager[None]:
        """Return the lock that pipelines of this name share; None shares nothing."""
        return nullcontext() if name is None else self.locks[name]

    async def close_idle(self) -> None:
        """Close what is not in use; who uses a connection closes it after its call."""
        await self.calls.disconnect(inuse_connections=False)
        await self.blocking_calls.disconnect(inuse_connections=False)

    async def close(self) -> None:
        """Close all connections."""
        await self.calls.aclose()
        await self.blocking_calls.aclose()


def open_pools(url: str) -> Pools:
    """Return pools that connect on first use."""
    return Pools(url, _open_pool(url), _open_pool(url), defaultdict(asyncio.Lock))


async def ask_sentinel(url: str, service: str) -> tuple[str, int] | None:
    """Ask one Sentinel for host and port of the primary; None if it cannot say."""
    from redis import exceptions  # noqa: PLC0415 (the library is imported when a URL needs it)

    pool = _open_pool(url)
    try:
        connection = await pool.get_connection()  # type: ignore[no-untyped-call]
        try:
            found = await send(connection, ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", service), TIMEOUT)
        finally:
            await pool.release(connection)
    except (exceptions.RedisError, OSError):
        return None
    finally:
        await pool.aclose()
    return None if found is None else (found[0].decode(), int(found[1]))


def _open_pool(url: str) -> BlockingConnectionPool:
    try:
        from redis.asyncio import BlockingConnectionPool  # noqa: PLC0415
        from redis.asyncio.retry import Retry  # noqa: PLC0415
        from redis.backoff import NoBackoff  # noqa: PLC0415
    except ImportError as error:
        message = "this URL needs the package redis: install fairlane[redis]"
        raise ConfigError(message, key="url") from error
    try:
        pool: BlockingConnectionPool = BlockingConnectionPool.from_url(
            url,
            max_connections=_MAX_CONNECTIONS,
            timeout=TIMEOUT,
            protocol=3,
            socket_timeout=None,  # see `send`
            socket_connect_timeout=TIMEOUT,
            # We decide about retries: an enqueue that is sent twice must say so.
            retry=Retry(NoBackoff(), 0),
            driver_info=_driver_info(),
            redis_connect_func=_on_connect,
        )
    except ValueError:  # its text may have a part of the URL
        raise ConfigError("an option of it has a value that does not fit", key="url") from None
    return pool


async def _on_connect(connection: AbstractConnection) -> None:
    receive_into_one_buffer(connection._writer.transport)  # type: ignore[union-attr]  # noqa: SLF001 (not public)
    await connection.on_connect()


@cache
def _driver_info() -> DriverInfo:
    """Name this client once: the library would read its own version from disk for each connection."""
    from redis.driver_info import DriverInfo  # noqa: PLC0415

    return DriverInfo()
