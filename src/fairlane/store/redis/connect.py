"""Reach a server: find it by its URL, run scripts there, wait for it, and say in our words what went wrong.

Knows no verb and no key. Nothing is connected before the first call; each event loop has its own.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from weakref import WeakKeyDictionary

from fairlane.model.errors import ConfigError, EnqueueUnknown, StoreBusy, StoreError, StoreUnavailable
from fairlane.model.instants import Instant
from fairlane.store.redis.keys import Keys
from fairlane.store.redis.scripts import Script, load

if TYPE_CHECKING:
    from redis.asyncio import BlockingConnectionPool
    from redis.asyncio.connection import AbstractConnection

_PREFIX: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_CONNECTIONS: Final = 16
_PATIENCE: Final = 5.0
"""How many seconds a call may take, and a connection may take to come free."""


class _BatchFirstError(Exception):
    """Nothing was done: a batch must be in first."""


class Location:
    """Where the installation is: a server's URL and, as `?prefix=`, the name that all its keys begin with."""

    def __init__(self, url: str) -> None:
        """Take our own option out of the URL; the rest is the client library's."""
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        prefix = options.pop("prefix", "fairlane")
        if not _PREFIX.fullmatch(prefix):
            raise ConfigError("prefix is 1 to 64 of A-Z a-z 0-9 _ . : -", key="url")
        self.url = urlunsplit(parts._replace(query=urlencode(options)))
        self.keys = Keys(prefix)
        self.place = f"{parts.hostname or parts.path}" + (
            f":{parts.port}" if parts.hostname and parts.port else ""
        )


class Wire:
    """The way to one installation's server."""

    def __init__(self, location: Location, clock: Callable[[], Instant] | None) -> None:
        """Connect nothing yet. Tests give a clock, nobody else does."""
        self._location = location
        self._clock = clock
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Any, Any]] = WeakKeyDictionary()
        self.keys = location.keys

    async def run(self, name: str, *arguments: Any, at: Instant | None = None, enqueues: bool = False) -> Any:
        """Run the script of a verb at the server's own instant, or at one that it gave before."""
        script = load(name)
        instant = at if at is not None else "" if self._clock is None else self._clock()
        command = ("EVALSHA", script.sha, 1, self.keys.base, instant, *arguments)
        while True:
            try:
                return await self._ask(self._pool(), command, enqueues=enqueues, script=script)
            except _BatchFirstError:
                await self.fold(enqueues=enqueues)

    async def fold(self, *, enqueues: bool = False) -> None:
        """Bring a batch that is on its way in to its end, whoever sent it."""
        while await self.run("fold", enqueues=enqueues):
            pass

    async def ask(self, *command: Any) -> Any:
        """Send one command."""
        return await self._ask(self._pool(), command)

    async def block(self, seconds: float, *command: Any) -> Any:
        """Send a command that the server answers when something happens, or after so many seconds."""
        return await self._ask(self._waiting_pool(), command, patience=seconds + _PATIENCE)

    async def close(self) -> None:
        """Let go of this loop's connections; what another loop has is closed with it."""
        pools = self._pools.pop(asyncio.get_running_loop(), ())
        for pool in pools:
            await pool.aclose()

    async def _ask(
        self,
        pool: BlockingConnectionPool,
        command: tuple[Any, ...],
        *,
        enqueues: bool = False,
        patience: float = _PATIENCE,
        script: Script | None = None,
    ) -> Any:
        from redis import exceptions  # noqa: PLC0415 (the library is imported when a URL needs it)

        try:
            connection = await pool.get_connection()  # type: ignore[no-untyped-call]
        except (exceptions.RedisError, OSError) as error:
            raise self._translated(error) from error
        try:
            return await _exchange(connection, command, patience, script)
        except (exceptions.RedisError, OSError) as error:
            is_answer = isinstance(error, exceptions.ResponseError)
            if is_answer and str(error).startswith("BATCH"):
                raise _BatchFirstError from error
            if not is_answer:
                await connection.disconnect(nowait=True)
            raise self._translated(error, is_unknown=enqueues and not is_answer) from error
        except BaseException:
            # Its answer is still on its way: nobody else may read it.
            await connection.disconnect(nowait=True)
            raise
        finally:
            await pool.release(connection)

    def _translated(self, error: Exception, *, is_unknown: bool = False) -> StoreError:
        from redis import exceptions  # noqa: PLC0415

        place, text = self._location.place, str(error)
        if is_unknown:
            return EnqueueUnknown(
                f"{place}: the enqueue was sent and not confirmed ({text}); repeat it under the same ids"
            )
        if isinstance(error, exceptions.TimeoutError):
            return StoreBusy(f"{place}: no answer in time ({text})")
        if isinstance(error, exceptions.OutOfMemoryError):
            return StoreUnavailable(f"{place}: the server is out of memory and took nothing ({text})")
        is_away = isinstance(
            error,
            (
                exceptions.ConnectionError,
                exceptions.ReadOnlyError,
                exceptions.ClusterError,
                exceptions.TryAgainError,
                OSError,
            ),
        )
        if is_away or text.startswith(("LOADING", "MASTERDOWN", "UNKILLABLE")):
            return StoreUnavailable(f"{place}: {text}")
        if text.startswith("BUSY"):
            return StoreBusy(f"{place}: {text}")
        return StoreError(f"{place}: {text}")

    def _pool(self) -> BlockingConnectionPool:
        return self._pools_here()[0]

    def _waiting_pool(self) -> BlockingConnectionPool:
        return self._pools_here()[1]

    def _pools_here(self) -> tuple[BlockingConnectionPool, BlockingConnectionPool]:
        loop = asyncio.get_running_loop()
        pools = self._pools.get(loop)
        if pools is None:
            pools = self._pools[loop] = (_open_pool(self._location.url), _open_pool(self._location.url))
        return pools


async def _exchange(
    connection: AbstractConnection, command: tuple[Any, ...], patience: float, script: Script | None
) -> Any:
    from redis import exceptions  # noqa: PLC0415

    try:
        return await _send(connection, command, patience)
    except exceptions.NoScriptError:
        if script is None:
            raise
        # A new server, a restart, a failover or a flush: it gets the text once and keeps it.
        return await _send(connection, ("EVAL", script.text, *command[2:]), patience)


async def _send(connection: AbstractConnection, command: tuple[Any, ...], patience: float) -> Any:
    await connection.send_command(*command)
    return await connection.read_response(timeout=patience)


def _open_pool(url: str) -> BlockingConnectionPool:
    try:
        from redis.asyncio import BlockingConnectionPool  # noqa: PLC0415
        from redis.asyncio.retry import Retry  # noqa: PLC0415
        from redis.backoff import NoBackoff  # noqa: PLC0415
    except ImportError as error:
        message = "this URL needs the package redis: install fairlane[redis]"
        raise ConfigError(message, key="url") from error
    pool: BlockingConnectionPool = BlockingConnectionPool.from_url(
        url,
        max_connections=_CONNECTIONS,
        timeout=_PATIENCE,
        protocol=3,
        socket_timeout=_PATIENCE,
        socket_connect_timeout=_PATIENCE,
        # A repeat is our own decision: an enqueue that is sent twice must say so.
        retry=Retry(NoBackoff(), 0),
    )
    return pool
