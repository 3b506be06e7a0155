"""Redis 7.0, the oldest server there may be: what its Lua and its commands do differently would show here.

The whole suite runs on it with `FAIRLANE_TEST_REDIS=redis7`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from redis import Redis

from fairlane.model.instants import SECOND
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.inspection import InspectRequest
from fairlane.store.contract.registry import WaitRequest
from fairlane.store.opening import open_store
from fairlane.store.redis.script_loader import load
from tests.contract.world import ALL, World, failed
from tests.oracle.clock import DrivenClock
from tests.redis.rendering import VERBS
from tests.servers.valkey import MEMORY, ValkeyServer


@pytest.fixture(scope="module")
def old() -> Iterator[ValkeyServer]:
    """Start Redis 7.0, installed or fetched."""
    try:
        server = ValkeyServer("--appendonly", "yes", folder=MEMORY, kind="redis7")
    except LookupError as error:
        pytest.skip(str(error))
    server.start()
    yield server
    server.remove()


@pytest.fixture
async def world(old: ValkeyServer, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Open a store there, under a prefix of its own; the books must balance at the end."""
    clock = DrivenClock()
    store = open_store(f"{old.url}?prefix={request.node.name}", clock=clock)
    world = World(store, clock)
    yield world
    await world.check_invariants()
    await store.upkeep.aclose()


async def test_it_is_redis_and_new_enough(world: World) -> None:
    """Not Valkey by another name."""
    found = await world.store.upkeep.inspect(InspectRequest(scope=ALL))
    (server,) = [one for one in found.remarks if one.check == "server"]
    assert (server.level, server.what.split(".")[0]) == ("ok", "Redis 7")


def test_it_takes_every_script(old: ValkeyServer) -> None:
    """Under the name that the store asks for."""
    with Redis.from_url(old.url) as client:
        assert [client.script_load(load(verb).text) for verb in VERBS] == [load(verb).sha for verb in VERBS]


async def test_jobs_live_their_whole_life(world: World) -> None:
    """Keyed, delayed, large batches; claimed, renewed, failed, lost, settled, cancelled, found, pruned."""
    await world.enqueue(idempotency_key="k", delay=SECOND)
    assert not (await world.send(world.new(idempotency_key="k", delay=SECOND))).enqueued[0].is_created
    await world.send(*(world.new(f"t{number % 3}") for number in range(130)))
    claims = await world.claim(100)
    assert [claim.job.tenant for claim in claims[:6]] == ["t0", "t1", "t2"] * 2
    assert await world.settle(claims[0], failed()) is State.DELAYED
    await world.renew(claims[1])
    world.advance(3_600)
    assert len((await world.reclaim()).lost) == 99
    await world.promote()
    for claim in await world.claim(131):
        assert await world.settle(claim) is State.SUCCEEDED
    await world.prune(succeeded=0, keys=0)
    assert await world.find_all() == []


async def test_a_waiting_worker_is_woken(world: World) -> None:
    """By a hint on a stream that it blocks on."""
    request = WaitRequest(scope=ALL, worker="w1", queues=("default",), at_most=60 * SECOND)
    wait = asyncio.ensure_future(world.store.registry.wait(request))
    await world.enqueue()
    assert await wait
