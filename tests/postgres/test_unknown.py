"""An enqueue whose answer was lost: nobody knows its fate, and a repeat makes it exactly one job (S15)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from fairlane import EnqueueUnknown, Fairlane
from fairlane.model.errors import StoreUnavailable
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL, World, payload
from tests.oracle.clock import DrivenClock
from tests.servers.postgres import PostgresServer
from tests.servers.proxy import Proxy, proxied

MARK = b"cut the line here"
WAYS = ["lost on the way there", "lost on the way back"]


@pytest.fixture
async def proxy(breakable: PostgresServer) -> AsyncIterator[Proxy]:
    """A way to the module's server that can be broken."""
    async with proxied(breakable.port) as proxy:
        yield proxy


@pytest.fixture
async def world(breakable: PostgresServer) -> AsyncIterator[World]:
    """A world on the module's server, in a schema of the test's own, by a way that holds."""
    clock = DrivenClock()
    store = PostgresStore(f"{breakable.tcp_url}?schema=test", clock.now)
    world = World(store, clock)
    await store.upkeep.migrate()
    yield world
    await world.check_invariants()
    await store._server.fetch("DROP SCHEMA test CASCADE")
    await store.upkeep.aclose()


@pytest.fixture
def url(world: World, proxy: Proxy) -> str:
    """The same store by the way that can be broken."""
    return f"postgresql://fairlane@127.0.0.1:{proxy.port}/postgres?schema=test"


def plan_cut(proxy: Proxy, way: str, mark: bytes = MARK) -> None:
    """Lose the next message with the mark, or the answer to it."""
    (proxy.cut_before if way == WAYS[0] else proxy.cut_after)(mark)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", [None, "the same"])
async def test_a_repeat_under_the_same_ids_is_one_job(
    world: World, proxy: Proxy, url: str, way: str, key: str | None
) -> None:
    """S15: whether the first was stored or not, with a key of the caller's or without."""
    store = PostgresStore(url, world.clock.now)
    jobs = tuple(
        world.new(payload=payload(text=MARK.decode()), idempotency_key=None if key is None else f"{key} {n}")
        for n in range(3)
    )
    plan_cut(proxy, way)
    with pytest.raises(EnqueueUnknown) as caught:
        await store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=jobs))
    assert not caught.value.retry_safe
    assert len(await world.find_all()) == (0 if way == WAYS[0] else 3)
    reply = await store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=jobs, is_repeated=True))
    assert [one.job.id for one in reply.enqueued] == [job.id for job in jobs]
    assert len(await world.find_all()) == 3
    await store.upkeep.aclose()


@pytest.mark.parametrize("way", WAYS)
async def test_an_application_does_not_notice(world: World, proxy: Proxy, url: str, way: str) -> None:
    """S15: it asks again by itself, and gets the one job."""
    app = Fairlane(url, config={})

    @app.task(name="write")
    async def write(text: str) -> None: ...

    async with app:
        plan_cut(proxy, way)
        job = await write.using(tenant="acme").aenqueue(text=MARK.decode())
        assert proxy.cuts_made == 1
        assert [one.id for one in await world.find_all()] == [job.id]


async def test_an_application_that_is_cut_off_twice_is_told(world: World, proxy: Proxy, url: str) -> None:
    """S15: with the ids, which a repeat or a look needs."""
    app = Fairlane(url, config={})

    @app.task(name="write")
    async def write(text: str) -> None: ...

    async with app:
        plan_cut(proxy, WAYS[1])
        plan_cut(proxy, WAYS[0], b"BEGIN ")  # of the repeat, which looks before it stores
        with pytest.raises(EnqueueUnknown) as caught:
            await write.using(tenant="acme").aenqueue(text=MARK.decode())
        (job,) = await world.find_all()
        assert str(job.id) in str(caught.value)
        repeated = await caught.value.arepeat()
        assert (repeated.id, repeated.created) == (job.id, True)
    again = await asyncio.to_thread(caught.value.repeat)
    await asyncio.to_thread(app.close)
    assert again.id == job.id
    assert len(await world.find_all()) == 1


async def test_an_enqueue_that_was_answered_is_done_whatever_breaks_behind_it(
    world: World, proxy: Proxy, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S63: now and then an enqueue adds up what others have left; its own job is stored by then."""
    monkeypatch.setattr("fairlane.store.postgres.jobs.enqueue._CHECK_BACKLOG_EVERY", 1)
    store = PostgresStore(url, world.clock.now)
    new = world.new()
    plan_cut(proxy, WAYS[0], b".apply_backlog(")
    reply = await store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=(new,)))
    assert proxy.cuts_made == 1
    assert [one.job.id for one in reply.enqueued] == [new.id] == [job.id for job in await world.find_all()]
    await store.upkeep.aclose()


async def test_an_enqueue_that_never_left_is_not_unknown(world: World, proxy: Proxy, url: str) -> None:
    """S66: without a connection nothing was sent, and the error says so."""
    proxy.is_refusing = True
    store = PostgresStore(url, world.clock.now)
    with pytest.raises(StoreUnavailable):
        await store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=(world.new(),)))
    await store.upkeep.aclose()
