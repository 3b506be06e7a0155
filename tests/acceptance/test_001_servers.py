"""Description B, servers: they are killed, replaced and restarted, asked by TLS, and joined by handlers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from uuid import uuid4

import apsw
import psycopg
import pytest
from redis import Redis

from fairlane import Context, EnqueueUnknown, Fairlane, Lane, State, StoreError, Task
from tests.acceptance.working import PATIENCE, QUICK, at_work, burst, until, until_ended
from tests.acceptance.world import World
from tests.invariants import check
from tests.redis.test_access import PAGE, certificate
from tests.seconds import counted
from tests.servers.postgres import MEMORY, PostgresServer, shared_url
from tests.servers.valkey import ValkeyServer, free_port

T = TypeVar("T")

BATCH: Final = 150
"""Jobs of one write: on Redis these are several scripts."""

FIVE_MINUTES: Final = 300.0
CONNECTIONS_MOST: Final = 100
AVAILABLE: Final = 0.995


class Pair(NamedTuple):
    """A server and its replica: where to write, how to kill it, how to make the replica take its place."""

    url: str
    kill: Callable[[], None]
    promote: Callable[[], None]
    promoted_url: str


@asynccontextmanager
async def _postgres_pair() -> AsyncIterator[Pair]:
    first = PostgresServer(folder=MEMORY)
    first.start()
    second = PostgresServer(folder=MEMORY, following=first)
    second.start()

    def promote() -> None:
        with psycopg.connect(second.url, autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")

    try:
        yield Pair(first.url, first.kill, promote, second.url)
    finally:
        second.close()
        first.close()


@asynccontextmanager
async def _redis_pair() -> AsyncIterator[Pair]:
    first, second = (ValkeyServer("--appendonly", "yes", folder=MEMORY, port=free_port()) for _ in range(2))
    try:
        first.start()
        second.start()
        with Redis.from_url(second.url) as client:
            client.replicaof("127.0.0.1", str(first.port))
            await until(lambda: client.info("replication")["master_link_status"] == "up")
            yield Pair(first.url, first.kill, lambda: client.replicaof("NO", "ONE"), second.url)
    finally:
        first.remove()
        second.remove()


PAIRS: Final[dict[str, Callable[[], AbstractAsyncContextManager[Pair]]]] = {
    "postgres": _postgres_pair,
    "redis": _redis_pair,
}


class Single(NamedTuple):
    """One server that keeps what it acknowledges: how to kill it, to start it again, to count its clients.

    `cut` ends the connections of all clients.
    """

    url: str
    kill: Callable[[], None]
    start: Callable[[], None]
    clients: Callable[[], int]
    cut: Callable[[], None]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Single]:
    """A PostgreSQL of its own."""
    server = PostgresServer(folder=MEMORY)
    server.start()

    def clients() -> int:
        with psycopg.connect(server.url) as connection:
            text = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fairlane'"
            (found,) = connection.execute(text).fetchone() or (0,)
            return int(found)

    def cut() -> None:
        with psycopg.connect(server.url) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'fairlane'"
            )

    yield Single(server.url, server.kill, server.start, clients, cut)
    server.close()


@pytest.fixture(scope="module")
def redis() -> Iterator[Single]:
    """A Valkey of its own."""
    server = ValkeyServer("--appendonly", "yes", "--appendfsync", "always", folder=MEMORY)
    server.start()

    def clients() -> int:
        with Redis.from_url(server.url) as client:
            return len(client.client_list()) - 1

    def cut() -> None:
        with Redis.from_url(server.url) as client:
            client.client_kill_filter(_type="normal", skipme=True)

    yield Single(server.url, server.kill, server.start, clients, cut)
    server.remove()


@pytest.fixture(params=["postgres", "redis"])
def single(request: pytest.FixtureRequest) -> Single:
    """A server of each kind."""
    found: Single = request.getfixturevalue(request.param)
    return found


def counting(app: Fairlane) -> Task[[int], int]:
    """Declare the task of these tests."""

    async def count(number: int) -> int:
        return number

    return app.task(name="count")(count).using(tenant="acme")


async def once_there(attempt: Callable[[], Awaitable[T]]) -> T:
    """Try until the store answers."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(StoreError):
                return await attempt()
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("kind", sorted(PAIRS))
async def test_001_ec_5_a_failover_in_the_middle_of_a_write_leaves_nothing_half_written(kind: str) -> None:
    """The server is killed while batches come in, and its replica takes over: a batch is whole, or gone."""
    async with PAIRS[kind]() as pair:
        sent = 0

        async def pour(app: Fairlane) -> None:
            nonlocal sent
            task = counting(app)
            with suppress(StoreError):
                while True:
                    sent += 1
                    await app.aenqueue_many([task.bind(sent)] * BATCH)

        async with Fairlane(pair.url) as app:
            await app.client.store.upkeep.migrate()
            pouring = asyncio.ensure_future(pour(app))
            await until(lambda: sent > 5)
            await asyncio.to_thread(pair.kill)
            await pouring
        await asyncio.to_thread(pair.promote)
        async with Fairlane(pair.promoted_url) as heir:
            task = counting(heir)
            await once_there(lambda: heir.aenqueue_many([task.bind(0)] * BATCH))
            worker = await burst(heir, settings=QUICK)
            assert worker.settled >= 4 * BATCH
            assert (worker.settled % BATCH, worker.failed) == (0, 0)
            await check(heir.client.store)


async def test_001_nf_8_work_goes_on_soon_after_the_server_was_restarted(single: Single) -> None:
    """Of a worker that was there all the time; five minutes are allowed."""
    async with Fairlane(f"{single.url}{_under('restart', single)}") as app:
        await app.client.store.upkeep.migrate()
        task = counting(app)
        async with at_work(app, settings=QUICK):
            await until_ended(await task.aenqueue(1))
            await asyncio.to_thread(single.kill)
            await asyncio.to_thread(single.start)
            async with counted() as seconds:
                job = await once_there(lambda: task.aenqueue(2))

                async def is_done() -> bool:
                    return (await once_there(job.arefresh)).state is State.SUCCEEDED

                await until(is_done)
            assert seconds() < FIVE_MINUTES


async def test_001_nf_6_enqueues_are_answered_while_connections_are_cut(single: Single) -> None:
    """At least 99.5 % of them, where every four hundredth meets a cut of all connections; all of them run."""
    answered, calls = 0, 2_000
    async with Fairlane(f"{single.url}{_under('available', single)}") as app:
        await app.client.store.upkeep.migrate()
        task = counting(app)
        async with at_work(app):
            for number in range(calls):
                if number % 400 == 200:
                    await asyncio.to_thread(single.cut)
                try:
                    await task.aenqueue(number)
                    answered += 1
                except EnqueueUnknown as error:
                    await once_there(error.arepeat)
                except StoreError:
                    await once_there(lambda number=number: task.aenqueue(number))  # type: ignore[misc]

            async def are_finished() -> bool:
                return (await app.jobs.acount()).is_finished

            await until(are_finished)
        counts = await app.jobs.acount()
    assert answered / calls >= AVAILABLE
    assert (counts[State.SUCCEEDED], counts.total) == (calls, calls)


async def test_001_nf_11_a_worker_has_at_most_100_connections(single: Single) -> None:
    """With as many slots, all of them asking for something at once; there are far fewer."""
    async with Fairlane(f"{single.url}{_under('crowd', single)}") as app:
        await app.client.store.upkeep.migrate()
        task = counting(app)
        most = 0

        @app.task(name="asks")
        async def asks(number: int) -> None:
            nonlocal most
            await task.aenqueue(number)
            if number % 50 == 0:
                most = max(most, await asyncio.to_thread(single.clients))

        await app.aenqueue_many([asks.using(tenant="acme").bind(number) for number in range(400)])
        lane = Lane("main", CONNECTIONS_MOST, ("default",))
        assert (await burst(app, lanes=[lane], settings=QUICK)).settled == 800
    assert 0 < most <= CONNECTIONS_MOST


def _under(name: str, single: Single) -> str:
    """Provide a separate place on the module's server for each test."""
    if single.url.startswith("unix:"):
        return f"?prefix={name}"
    return f"&schema={name}" if "?" in single.url else f"?schema={name}"


async def test_001_nf_19_redis_is_reached_by_tls_and_by_a_user_of_its_own(tmp_path: Path) -> None:
    """With the rights that the page on Redis gives; without the user, and without TLS, nobody comes in."""
    try:
        made, key = certificate(tmp_path)
        files = ("--tls-cert-file", str(made), "--tls-key-file", str(key), "--tls-auth-clients", "no")
        port = free_port()
        server = ValkeyServer(*files, "--tls-port", str(port), folder=MEMORY, kind="redis7")
    except LookupError as error:
        pytest.skip(str(error))
    server.start()
    try:
        (advised,) = re.findall("^ACL SETUSER .*", PAGE.read_text("utf-8"), re.MULTILINE)
        with Redis.from_url(server.url) as client:
            client.execute_command(*advised.split())
            client.execute_command("ACL", "SETUSER", "default", "off")
        rest = f"127.0.0.1:{port}?ssl_ca_certs={made}&prefix=shop"
        async with Fairlane(f"rediss://shop:password@{rest}") as app:
            job = await counting(app).aenqueue(7)
            await burst(app, settings=QUICK)
            assert await job.aresult() == 7
        for wrong in (f"rediss://{rest}", f"redis://shop:password@127.0.0.1:{port}?prefix=shop"):
            async with Fairlane(wrong) as app:
                with pytest.raises(StoreError):
                    await counting(app).aenqueue(7)
    finally:
        server.remove()


@pytest.mark.parametrize("world", ["postgres", "sqlite"], indirect=True)
async def test_001_ex_25_success_and_effect_are_committed_together(world: World) -> None:
    """Or neither is: after a roll-back the job is tried again. On Redis there is no common transaction."""
    app = world.app()
    await app.client.store.upkeep.migrate()
    effects = _effects(world)
    is_refused = True

    @app.task(name="pay", max_attempts=2)
    def pay(ctx: Context) -> str:
        with effects.transaction() as connection:
            connection.execute(effects.insert)
            ctx.succeed_in(connection, "paid")
            if is_refused:
                raise ValueError("the bank says no")
        return "not looked at"

    job = await pay.using(tenant="acme").aenqueue()
    await burst(app, settings=QUICK)
    back = await job.arefresh()
    assert (back.state, back.failures, effects.count()) == (State.DELAYED, 1, 0)
    is_refused = False
    world.advance(60)
    await burst(app, settings=QUICK)
    done = await job.arefresh()
    assert (done.state, await done.aresult(), effects.count()) == (State.SUCCEEDED, "paid", 1)
    effects.drop()


class _Effects:
    """The application's own table in the store's database, by connections of its own."""

    def __init__(self, connect: Callable[[], Any], prefix: str) -> None:
        self._connect = connect
        self._table = f"{prefix}effects_{uuid4().hex}"
        self.insert = f"INSERT INTO {self._table} VALUES (1)"  # noqa: S608 (its own name)
        with self.transaction() as connection:
            connection.execute(f"CREATE TABLE {self._table} (n int)")

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Open a connection for one transaction, which an error rolls back."""
        with closing(self._connect()) as connection, connection:
            yield connection

    def count(self) -> int:
        """Count what was committed."""
        with self.transaction() as connection:
            text = f"SELECT count(*) FROM {self._table}"  # noqa: S608 (its own name)
            return int(next(iter(connection.execute(text)))[0])

    def drop(self) -> None:
        """Leave nothing behind on a server that others use."""
        with self.transaction() as connection:
            connection.execute(f"DROP TABLE {self._table}")


def _effects(world: World) -> _Effects:
    if world.place.startswith("sqlite"):
        path = world.place.removeprefix("sqlite:///")

        def connect() -> apsw.Connection:
            made = apsw.Connection(path)
            made.set_busy_timeout(10_000)
            return made

        return _Effects(connect, "")
    return _Effects(lambda: psycopg.connect(shared_url()), "public.")
