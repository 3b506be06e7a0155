"""Run scripts and commands on the server of one installation, wherever it is now.

Finds the server, loads a script that it does not have, finishes a large batch that goes first, and raises
errors of ours. Knows no verb. Nothing is connected before the first call; each event loop has its own pools.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from fairlane.model.errors import StoreError, StoreUnavailable
from fairlane.model.instants import Instant
from fairlane.store.redis.connection import TIMEOUT, Pools, ask_sentinel, open_pools
from fairlane.store.redis.errors import BATCH_FIRST, is_reply, translate, was_not_run
from fairlane.store.redis.location import Location
from fairlane.store.redis.pipeline import (
    Command,
    await_replicas,
    nothing,
    pipeline,
    raise_error,
    send,
    send_until_zero,
)
from fairlane.store.redis.script_loader import Script, load
from fairlane.store.redis.server import check_server

if TYPE_CHECKING:
    from redis.asyncio.connection import AbstractConnection

NO_JOINING: Final = (
    "a Redis or Valkey server cannot join a transaction of your database; use the outbox in your own database"
)
_MAX_REDIRECTS: Final = 5
_IN_FLIGHT: Final = 4
"""Scripts of a pipeline in flight. With fewer, the server waits for a worker whose handlers hold the
interpreter, for milliseconds; with more, others wait: it serves all that it has of one client at once."""

_ALL_IN_FLIGHT: Final = 3_000
"""More commands than any pipeline has: two for each part of a batch, which has at most 1,000 jobs."""

_CONFIRM_ENQUEUE: Final = ("jobs/enqueue", "jobs/batch_result", "dead/reprocess")
"""Scripts whose reply confirms an enqueue: the replicas are awaited after them."""

_CHECK_SERVER_FIRST: Final = ("jobs/enqueue", "registry/register", "dead/reprocess")
"""Scripts with which clients and workers begin: the server is checked before."""


class _BatchFirstError(Exception):
    """Nothing was done: a large batch goes first."""


class _ElsewhereError(Exception):
    """Nothing was done: the installation is on another server."""


class _Call(NamedTuple):
    """What to send, what the server may need first, and what no reply means.

    `while_waiting` is called once the command is sent: work that the caller has to do anyway. `until_zero`
    sends the command again until the reply is 0. A pipeline has `commands` instead, made while it is sent,
    of which at most `in_flight` are outstanding; pipelines with the same `lock` are sent one after the
    other.
    """

    command: Command = ()
    script: Script | None = None
    timeout: float = TIMEOUT
    is_enqueue: bool = False
    is_blocking: bool = False
    replicas: int = 0
    while_waiting: Callable[[], None] = nothing
    until_zero: bool = False
    commands: Callable[[], Iterable[Command]] | None = None
    on_reply: Callable[[Any], None] = raise_error
    in_flight: int = _IN_FLIGHT
    lock: str | None = None


class RedisClient:
    """The server of one installation."""

    def __init__(self, location: Location, clock: Callable[[], Instant] | None) -> None:
        """Connect nothing yet. Only tests pass a clock."""
        self._location = location
        self._clock = clock
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, Pools] = WeakKeyDictionary()
        self._checked: set[str | None] = set()
        self.keys = location.keys
        self.replicas = location.replicas

    async def run(
        self,
        name: str,
        *arguments: Any,
        at: Instant | None = None,
        is_enqueue: bool = False,
        while_waiting: Callable[[], None] = nothing,
    ) -> Any:
        """Run a script at the server's own instant, or at one that it returned before.

        `while_waiting` is called as soon as the script is sent, and again if it is sent again.
        """
        if name in _CHECK_SERVER_FIRST:
            await self._check_server()
        script, command = load(name), self.command(name, *arguments, at=at)
        while True:
            try:
                replicas = self.replicas if name in _CONFIRM_ENQUEUE else 0
                call = _Call(
                    command, script, TIMEOUT, is_enqueue, replicas=replicas, while_waiting=while_waiting
                )
                return await self._call(call)
            except _BatchFirstError:
                await self.finish_batch(is_enqueue=is_enqueue)

    def command(self, name: str, *arguments: Any, at: Instant | None = None) -> Command:
        """Return the command that runs a script."""
        instant = at if at is not None else "" if self._clock is None else self._clock()
        return "EVALSHA", load(name).sha, 1, self.keys.base, instant, *arguments

    async def run_pages(
        self, name: str, pages: Sequence[Command], on_reply: Callable[[int, Any], None], lock: str | None
    ) -> None:
        """Run a script for one page of arguments after the other; pass number and reply to `on_reply`.

        Of callers with the same lock each begins when the last page of the one before is sent. A page that
        was refused did nothing, and is run again after the others: a batch goes first, or the script must
        be loaded.
        """
        numbers, refused = iter(range(len(pages))), []

        def note(reply: Any) -> None:
            number = next(numbers)
            if isinstance(reply, Exception):
                refused.append(number)
            else:
                on_reply(number, reply)

        def commands() -> Iterator[Command]:
            for page in pages:
                yield self.command(name, *page)

        await self._call(_Call(commands=commands, on_reply=note, lock=lock))
        for number in refused:
            on_reply(number, await self.run(name, *pages[number]))

    async def finish_batch(self, *, is_enqueue: bool = False) -> None:
        """Bring in a large batch that was published, whoever sent it."""
        name = "jobs/batch_step"
        call = _Call(self.command(name), load(name), is_enqueue=is_enqueue, until_zero=True)
        while await self._call(call):
            pass

    async def pipeline_all(
        self, commands: Callable[[], Iterable[Command]], on_reply: Callable[[int, Any], None]
    ) -> list[Any]:
        """Send all commands, then read. Return the replies: None for a script that was not run."""
        replies: list[Any] = []

        def begin() -> Iterable[Command]:
            replies.clear()
            return commands()

        def note(reply: Any) -> None:
            replies.append(None if was_not_run(reply) else reply)
            on_reply(len(replies) - 1, replies[-1])
            raise_error(replies[-1])

        await self._check_server()
        call = _Call(
            commands=begin, on_reply=note, in_flight=_ALL_IN_FLIGHT, is_enqueue=True, replicas=self.replicas
        )
        await self._call(call)
        return replies

    async def ask(self, *command: Any) -> Any:
        """Send one command."""
        return await self._call(_Call(command))

    async def block(self, seconds: float, *command: Any) -> Any:
        """Send a command that the server answers when something happens, or after a number of seconds."""
        return await self._call(_Call(command, timeout=seconds + TIMEOUT, is_blocking=True))

    async def close(self) -> None:
        """Close the connections of this loop; those of another loop end with it."""
        pools = self._pools.pop(asyncio.get_running_loop(), None)
        if pools is not None:
            await pools.close()

    async def _check_server(self) -> None:
        """Check each server once."""
        if self._location.url not in self._checked:
            await self.ask("EXISTS", self.keys("meta"))  # with a key: so that a cluster redirects us
            await check_server(self.ask, str(self._location), self.replicas)
            self._checked.add(self._location.url)

    async def _call(self, call: _Call) -> Any:
        """Call the server, wherever it is now."""
        for _ in range(_MAX_REDIRECTS):
            pools = await self._current_pools()
            try:
                return await self._call_there(pools, call)
            except _ElsewhereError:
                continue
        message = f"{self._location}: the servers redirect us in a circle"
        raise StoreUnavailable(message)

    async def _call_there(self, pools: Pools, call: _Call) -> Any:
        from redis import exceptions  # noqa: PLC0415 (the library is imported when a URL needs it)

        pool = pools.blocking_calls if call.is_blocking else pools.calls
        try:
            connection = await pool.get_connection()  # type: ignore[no-untyped-call]
        except (exceptions.RedisError, OSError) as error:
            self._location.failed(pools.url)
            raise self._translate(error) from error
        try:
            reply = await _exchange(connection, call, pools.lock(call.lock))
            await await_replicas(connection, call.replicas, TIMEOUT)
            return reply  # noqa: TRY300
        except (exceptions.RedisError, OSError) as error:
            if is_reply(error):
                self._follow(error, pools.url)
                raise self._translate(error) from error
            await connection.disconnect(nowait=True)
            self._location.failed(pools.url)
            raise self._translate(error, is_unknown=call.is_enqueue) from error
        except BaseException:
            # The reply is still outstanding: nobody else may read it.
            await connection.disconnect(nowait=True)
            raise
        finally:
            if self._pools.get(asyncio.get_running_loop()) is not pools:
                # The server has moved meanwhile; this pool is not used again.
                await connection.disconnect(nowait=True)
            await pool.release(connection)

    def _translate(self, error: Exception, *, is_unknown: bool = False) -> StoreError:
        return translate(error, str(self._location), is_unknown=is_unknown)

    def _follow(self, error: Exception, url: str) -> None:
        """Do what an error reply asks for: finish a batch first, or go to another server."""
        from redis import exceptions  # noqa: PLC0415

        if str(error).startswith(BATCH_FIRST):
            raise _BatchFirstError from error
        if isinstance(error, exceptions.MovedError):
            self._location.moved(error.host, error.port)
            raise _ElsewhereError from error
        if isinstance(error, (exceptions.ReadOnlyError, exceptions.ClusterDownError)):
            self._location.failed(url)

    async def _current_pools(self) -> Pools:
        url = self._location.url or await self._find_primary()
        loop = asyncio.get_running_loop()
        pools = self._pools.get(loop)
        if pools is None or pools.url != url:
            before = pools
            pools = self._pools[loop] = open_pools(url)
            if before is not None:
                await before.close_idle()
        return pools

    async def _find_primary(self) -> str:
        """Ask one Sentinel after the other where the service is."""
        for url in self._location.sentinels():
            place = await ask_sentinel(url, str(self._location.service))
            if place is not None:
                self._location.moved(*place)
                return str(self._location.url)
        message = f"{self._location}: no Sentinel knows where {self._location.service} is"
        raise StoreUnavailable(message)


async def _exchange(
    connection: AbstractConnection, call: _Call, lock: AbstractAsyncContextManager[None]
) -> Any:
    from redis import exceptions  # noqa: PLC0415

    if call.commands is not None:
        return await pipeline(connection, call.commands(), call.on_reply, call.timeout, call.in_flight, lock)
    try:
        reply = await send(connection, call.command, call.timeout, call.while_waiting)
    except exceptions.NoScriptError:
        if call.script is None:
            raise
        # A new server, a restart, a failover or a flush: it gets the text once and keeps it.
        reply = await send(connection, ("EVAL", call.script.text, *call.command[2:]), call.timeout)
    if call.until_zero and reply:
        return await send_until_zero(connection, call.command, call.timeout)
    return reply
