"""How many connections there are at the most, under load, and when everybody comes back at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Final

import asyncpg
import pytest

from fairlane import Fairlane, Lane, Queue
from fairlane.model.errors import StoreError
from fairlane.store.contract.request import Request
from fairlane.store.postgres.store import PostgresStore
from fairlane.worker.worker import WorkerRuntime
from tests.contract.world import ALL
from tests.seconds import counted
from tests.servers.postgres import IMMEDIATE, MEMORY, PostgresServer

JOBS: Final = 200
CLIENTS: Final = 200
RECOVERY: Final = 10.0
"""Seconds in which all clients must be back."""

_COUNT: Final = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fairlane'"
_PID: Final = "SELECT pg_backend_pid()"


class Counter:
    """Counts Fairlane's connections, again and again, and keeps the highest number."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        """Count by a connection that is none of them."""
        self.most = 0
        self._connection = connection

    async def count(self) -> None:
        """Count until cancelled."""
        while True:
            self.most = max(self.most, await self._connection.fetchval(_COUNT))


@pytest.fixture
async def counter(roomy: PostgresServer) -> AsyncIterator[Counter]:
    """A counter of the connections to the module's server."""
    connection = await asyncpg.connect(roomy.url)
    yield Counter(connection)
    await connection.close()


@pytest.fixture(scope="module")
def roomy() -> Iterator[PostgresServer]:
    """A server of the module's own, with room for a crowd."""
    server = PostgresServer(f"max_connections={CLIENTS + 20}", folder=MEMORY)
    server.start()
    yield server
    server.close()


@pytest.mark.parametrize("lanes", [1, 4])
async def test_a_worker_has_no_more_connections_than_lanes_and_three(
    roomy: PostgresServer, lanes: int, counter: Counter
) -> None:
    """Under load, with handlers that enqueue, the duties and the listener."""
    queues = [f"q{number}" for number in range(lanes)]
    app = Fairlane(f"{roomy.url}&schema=lanes{lanes}", queues=list(map(Queue, queues)), config={})
    await app.client.store.upkeep.migrate()
    ran = 0

    @app.task(name="child")
    async def child() -> None:
        nonlocal ran
        ran += 1

    @app.task(name="parent")
    async def parent(queue: str) -> None:
        await child.using(queue=queue).aenqueue()

    @app.task(name="plain")
    def plain(queue: str) -> None:
        child.using(queue=queue).enqueue()

    works = [
        (parent if number % 2 else plain).using(tenant=f"t{number % 7}", queue=queue).bind(queue)
        for number in range(JOBS)
        for queue in [queues[number % lanes]]
    ]
    await app.aenqueue_many(works)
    await app.client.aclose_here()
    chosen = [Lane(queue, slots=16, queues=[queue]) for queue in queues]
    counting = asyncio.ensure_future(counter.count())
    await WorkerRuntime(app, lanes=chosen, burst=True).run()
    counting.cancel()
    await app.aclose()
    assert ran == JOBS
    assert lanes < counter.most <= lanes + 3


async def test_each_lane_has_a_connection(roomy: PostgresServer) -> None:
    """A pool made before the worker gave its number of concurrent calls is replaced by a larger one."""
    store = PostgresStore(f"{roomy.url}&schema=crowd")
    await store.upkeep.migrate()
    await store.registry.status(Request(scope=ALL))
    await store.registry.expect(4, waits=True)
    async with AsyncExitStack() as stack:
        pids = {
            await (await stack.enter_async_context(store._server.transaction())).fetchval(_PID)
            for _ in range(5)
        }
    assert len(pids) == 5
    await store.upkeep.aclose()


@pytest.mark.parametrize("calls", [0, 4])
async def test_a_pool_is_not_replaced_under_those_who_use_it(roomy: PostgresServer, calls: int) -> None:
    """A worker may begin in a loop in which others call the same store."""
    store = PostgresStore(f"{roomy.url}&schema=crowd")
    await store.upkeep.migrate()
    await store.registry.status(Request(scope=ALL))
    asking = [asyncio.ensure_future(store.registry.status(Request(scope=ALL))) for _ in range(50)]
    await asyncio.sleep(0)  # two of them ask, the others wait
    await store.registry.expect(calls, waits=True)
    assert all(status.now > 0 for status in await asyncio.gather(*asking))
    await store.upkeep.aclose()


async def test_a_crowd_that_comes_back_at_once_stays_within_its_pools(roomy: PostgresServer) -> None:
    """After a crash of the server all are back soon, each by the one connection that it needs."""
    async with AsyncExitStack() as stack:
        stores = [PostgresStore(f"{roomy.tcp_url}?schema=crowd") for _ in range(CLIENTS)]
        for store in stores:
            stack.push_async_callback(store.upkeep.aclose)
        await stores[0].upkeep.migrate()
        roomy.stop(IMMEDIATE)
        asking = asyncio.gather(*map(insist, stores))
        roomy.start()
        async with counted() as seconds:
            await asking
        assert seconds() < RECOVERY
        admin = await asyncpg.connect(roomy.url)
        assert await admin.fetchval(_COUNT) == CLIENTS
        await admin.close()


async def insist(store: PostgresStore) -> None:
    """Ask three times, and whatever goes wrong ask again."""
    for _ in range(3):
        while True:
            try:
                await store.registry.status(Request(scope=ALL))
            except StoreError:
                await asyncio.sleep(0.05)
            else:
                break
