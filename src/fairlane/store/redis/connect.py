"""Reach a server: find it by its URL, run scripts there, wait for it, and say in our words what went wrong.

Knows no verb and no key. Nothing is connected before the first call; each event loop has its own.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from fairlane.model.errors import ConfigError, EnqueueUnknown, StoreBusy, StoreError, StoreUnavailable
from fairlane.model.instants import Instant
from fairlane.store.receiving import receive_in_one_place
from fairlane.store.redis.exchange import Command, await_replicas, converse, demand, nothing, repeat, send
from fairlane.store.redis.location import Location
from fairlane.store.redis.scripts import Script, load
from fairlane.store.redis.server import greet

if TYPE_CHECKING:
    from redis.asyncio import BlockingConnectionPool
    from redis.asyncio.connection import AbstractConnection
    from redis.driver_info import DriverInfo

NO_JOINING: Final = (
    "a Redis or Valkey server cannot join a transaction of your database; use the outbox in your own database"
)
_CONNECTIONS: Final = 16
_MOVES: Final = 5
_AHEAD: Final = 4
"""How many scripts of a stream are on their way. With fewer, a server waits for workers whose handlers have
the interpreter, for milliseconds; with more, others wait: it does all that it finds of one client at once."""

_ALL: Final = 3_000
"""As many commands as any stream may have: two for each part of a batch, which has at most 1,000 jobs."""

_LAST_WORDS: Final = ("enqueue", "outcome")
"""The scripts that answer an enqueue."""

_AWAY: Final = ("UNKILLABLE", "MISCONF", "NOREPLICAS")
"""Answers of a server that does not write now, and has written nothing."""

_BEGIN: Final = ("enqueue", "register")
"""The scripts that clients and workers begin with: here a server is looked at first."""

_PATIENCE: Final = 5.0
"""How many seconds a call may take, and a connection may take to come free."""


class _BatchFirstError(Exception):
    """Nothing was done: a batch must be in first."""


class _ElsewhereError(Exception):
    """Nothing was done: the installation is on another server."""


class _Call(NamedTuple):
    """What is sent, what the server may have to be told first, and what an unknown end of it means.

    `meanwhile` is called once the command is on its way: what the caller has to do anyway, it does while the
    server works. `is_repeated` says that it is sent again until the server answers 0. Of a `stream` each
    command is sent as soon as it is made, and no more are `ahead` of their answers than so many; streams of
    one `line` go one after the other.
    """

    command: Command = ()
    script: Script | None = None
    patience: float = _PATIENCE
    enqueues: bool = False
    waits: bool = False
    replicas: int = 0
    meanwhile: Callable[[], None] = nothing
    is_repeated: bool = False
    stream: Callable[[], Iterable[Command]] | None = None
    heed: Callable[[Any], None] = demand
    ahead: int = _AHEAD
    line: str | None = None


class _Pools(NamedTuple):
    """The connections of one event loop to one server: for verbs, and for those who wait; and its lines."""

    url: str
    verbs: BlockingConnectionPool
    waits: BlockingConnectionPool
    lines: defaultdict[str, asyncio.Lock]

    def turn(self, call: _Call) -> AbstractAsyncContextManager[None]:
        """Wait for the streams before this one in its line."""
        return nullcontext() if call.line is None else self.lines[call.line]


class Wire:
    """The way to one installation's server."""

    def __init__(self, location: Location, clock: Callable[[], Instant] | None) -> None:
        """Connect nothing yet. Tests give a clock, nobody else does."""
        self._location = location
        self._clock = clock
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pools] = WeakKeyDictionary()
        self._greeted: set[str | None] = set()
        self.keys = location.keys
        self.replicas = location.replicas

    async def run(
        self,
        name: str,
        *arguments: Any,
        at: Instant | None = None,
        enqueues: bool = False,
        meanwhile: Callable[[], None] = nothing,
    ) -> Any:
        """Run the script of a verb at the server's own instant, or at one that it gave before.

        `meanwhile` is called as soon as the script is sent, and again if it has to be sent again.
        """
        if name in _BEGIN:
            await self._greet()
        script, command = load(name), self.words(name, *arguments, at=at)
        while True:
            try:
                replicas = self.replicas if name in _LAST_WORDS else 0
                call = _Call(command, script, _PATIENCE, enqueues, replicas=replicas, meanwhile=meanwhile)
                return await self._ask(call)
            except _BatchFirstError:
                await self.fold(enqueues=enqueues)

    def words(self, name: str, *arguments: Any, at: Instant | None = None) -> Command:
        """Give the command that runs the script of a verb."""
        instant = at if at is not None else "" if self._clock is None else self._clock()
        return "EVALSHA", load(name).sha, 1, self.keys.base, instant, *arguments

    async def run_all(
        self, name: str, pages: Sequence[Command], heed: Callable[[int, Any], None], line: str | None
    ) -> None:
        """Run the script of a verb for one page of arguments after the other, and heed what each answers.

        Of those in one line each begins when the last page of the one before is on its way. What was refused
        did nothing, and is run again after the others: a batch came first, or the server has to be told the
        script.
        """
        numbers, refused = iter(range(len(pages))), []

        def note(answer: Any) -> None:
            number = next(numbers)
            if isinstance(answer, Exception):
                refused.append(number)
            else:
                heed(number, answer)

        def commands() -> Iterator[Command]:
            for page in pages:
                yield self.words(name, *page)

        await self._ask(_Call(stream=commands, heed=note, line=line))
        for number in refused:
            heed(number, await self.run(name, *pages[number]))

    async def fold(self, *, enqueues: bool = False) -> None:
        """Bring a batch that is on its way in to its end, whoever sent it."""
        call = _Call(self.words("fold"), load("fold"), enqueues=enqueues, is_repeated=True)
        while await self._ask(call):
            pass

    async def pour(
        self, stream: Callable[[], Iterable[Command]], heard: Callable[[int, Any], None]
    ) -> list[Any]:
        """Send all commands, then read; `heard` gets each answer as it comes: None of a script not run."""
        answers: list[Any] = []

        def begin() -> Iterable[Command]:
            answers.clear()
            return stream()

        def note(answer: Any) -> None:
            answers.append(None if _did_nothing(answer) else answer)
            heard(len(answers) - 1, answers[-1])
            demand(answers[-1])

        await self._greet()
        await self._ask(_Call(stream=begin, heed=note, ahead=_ALL, enqueues=True, replicas=self.replicas))
        return answers

    async def _greet(self) -> None:
        """Look at a server, once."""
        if self._location.url not in self._greeted:
            await self.ask("EXISTS", self.keys("meta"))  # by a key: so that a cluster says where it is
            await greet(self.ask, str(self._location), self.replicas)
            self._greeted.add(self._location.url)

    async def ask(self, *command: Any) -> Any:
        """Send one command."""
        return await self._ask(_Call(command))

    async def block(self, seconds: float, *command: Any) -> Any:
        """Send a command that the server answers when something happens, or after so many seconds."""
        return await self._ask(_Call(command, patience=seconds + _PATIENCE, waits=True))

    async def close(self) -> None:
        """Let go of this loop's connections; what another loop has is closed with it."""
        pools = self._pools.pop(asyncio.get_running_loop(), None)
        if pools is not None:
            await pools.verbs.aclose()
            await pools.waits.aclose()

    async def _ask(self, call: _Call) -> Any:
        """Ask the server, wherever it is now."""
        for _ in range(_MOVES):
            pools = await self._pools_here()
            try:
                return await self._ask_there(pools, call)
            except _ElsewhereError:
                continue
        message = f"{self._location}: the servers send us from one to the other"
        raise StoreUnavailable(message)

    async def _ask_there(self, pools: _Pools, call: _Call) -> Any:
        from redis import exceptions  # noqa: PLC0415 (the library is imported when a URL needs it)

        pool = pools.waits if call.waits else pools.verbs
        try:
            connection = await pool.get_connection()  # type: ignore[no-untyped-call]
        except (exceptions.RedisError, OSError) as error:
            self._location.failed(pools.url)
            raise self._translated(error) from error
        try:
            answer = await _exchange(connection, call, pools.turn(call))
            await await_replicas(connection, call.replicas, _PATIENCE)
            return answer  # noqa: TRY300
        except (exceptions.RedisError, OSError) as error:
            is_answer = isinstance(error, (exceptions.ResponseError, exceptions.BusyLoadingError))
            if is_answer:
                self._heed(error, pools.url)
            else:
                await connection.disconnect(nowait=True)
                self._location.failed(pools.url)
            raise self._translated(error, is_unknown=call.enqueues and not is_answer) from error
        except BaseException:
            # Its answer is still on its way: nobody else may read it.
            await connection.disconnect(nowait=True)
            raise
        finally:
            if self._pools.get(asyncio.get_running_loop()) is not pools:
                # The server is elsewhere since, and nobody comes to this pool again.
                await connection.disconnect(nowait=True)
            await pool.release(connection)

    def _heed(self, error: Exception, url: str) -> None:
        """Do what an answer asks for that did nothing: a batch comes first, or the server is elsewhere."""
        from redis import exceptions  # noqa: PLC0415

        if str(error).startswith("BATCH"):
            raise _BatchFirstError from error
        if isinstance(error, exceptions.MovedError):
            self._location.moved(error.host, error.port)
            raise _ElsewhereError from error
        if isinstance(error, (exceptions.ReadOnlyError, exceptions.ClusterDownError)):
            self._location.failed(url)

    def _translated(self, error: Exception, *, is_unknown: bool = False) -> StoreError:
        from redis import exceptions  # noqa: PLC0415

        place, text = str(self._location), str(error)
        if is_unknown:
            return EnqueueUnknown(
                f"{place}: the enqueue was sent and not confirmed ({text}); repeat it under the same ids"
            )
        if isinstance(error, (exceptions.TimeoutError, TimeoutError)):
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
        if isinstance(error, exceptions.AskError):
            # Half of the installation is here, half there: whoever followed would see a half.
            return StoreUnavailable(f"{place}: its slot is being moved to another node ({text})")
        if is_away or text.startswith(_AWAY):
            return StoreUnavailable(f"{place}: {text}")
        if text.startswith("BUSY"):
            return StoreBusy(f"{place}: {text}")
        return StoreError(f"{place}: {text}")

    async def _pools_here(self) -> _Pools:
        url = self._location.url or await self._find_primary()
        loop = asyncio.get_running_loop()
        pools = self._pools.get(loop)
        if pools is None or pools.url != url:
            before = pools
            lines: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
            pools = self._pools[loop] = _Pools(url, _open_pool(url), _open_pool(url), lines)
            if before is not None:
                await before.verbs.disconnect(inuse_connections=False)
                await before.waits.disconnect(inuse_connections=False)
        return pools

    async def _find_primary(self) -> str:
        """Ask one Sentinel after the other where the service is."""
        for url in self._location.sentinels():
            place = await _ask_sentinel(url, str(self._location.service))
            if place is not None:
                self._location.moved(*place)
                return str(self._location.url)
        message = f"{self._location}: no Sentinel knows where {self._location.service} is"
        raise StoreUnavailable(message)


async def _ask_sentinel(url: str, service: str) -> tuple[str, int] | None:
    from redis import exceptions  # noqa: PLC0415

    pool = _open_pool(url)
    try:
        connection = await pool.get_connection()  # type: ignore[no-untyped-call]
        try:
            found = await send(connection, ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", service), _PATIENCE)
        finally:
            await pool.release(connection)
    except (exceptions.RedisError, OSError):
        return None
    finally:
        await pool.aclose()
    return None if found is None else (found[0].decode(), int(found[1]))


async def _exchange(
    connection: AbstractConnection, call: _Call, turn: AbstractAsyncContextManager[None]
) -> Any:
    from redis import exceptions  # noqa: PLC0415

    if call.stream is not None:
        return await converse(connection, call.stream(), call.heed, call.patience, call.ahead, turn)
    try:
        answer = await send(connection, call.command, call.patience, call.meanwhile)
    except exceptions.NoScriptError:
        if call.script is None:
            raise
        # A new server, a restart, a failover or a flush: it gets the text once and keeps it.
        answer = await send(connection, ("EVAL", call.script.text, *call.command[2:]), call.patience)
    if call.is_repeated and answer:
        return await repeat(connection, call.command, call.patience)
    return answer


def _did_nothing(answer: Any) -> bool:
    from redis import exceptions  # noqa: PLC0415

    is_refusal = isinstance(answer, exceptions.ResponseError) and str(answer).startswith("BATCH")
    return is_refusal or isinstance(answer, exceptions.NoScriptError)


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
            max_connections=_CONNECTIONS,
            timeout=_PATIENCE,
            protocol=3,
            socket_timeout=None,  # see `send`
            socket_connect_timeout=_PATIENCE,
            # A repeat is our own decision: an enqueue that is sent twice must say so.
            retry=Retry(NoBackoff(), 0),
            driver_info=_driver_info(),
            redis_connect_func=_begin,
        )
    except ValueError:  # its text may have a part of the URL
        raise ConfigError("an option of it has a value that does not fit", key="url") from None
    return pool


async def _begin(connection: AbstractConnection) -> None:
    receive_in_one_place(connection._writer.transport)  # type: ignore[union-attr]  # noqa: SLF001 (shown nowhere else)
    await connection.on_connect()


@cache
def _driver_info() -> DriverInfo:
    """Say once who we are: the library would look its own version up on the disk for each connection."""
    from redis.driver_info import DriverInfo  # noqa: PLC0415

    return DriverInfo()
