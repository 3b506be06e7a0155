"""A real cluster of four nodes, and a real Sentinel: installations find their server, and find it again."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from redis import Redis

import fairlane.store.redis.client as client_module
from fairlane.model.errors import EnqueueUnknown, StoreError, StoreUnavailable
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.opening import open_store
from tests.contract.world import ALL, World
from tests.oracle.clock import DrivenClock
from tests.servers.cluster import PATIENCE, ask, await_fact, follow, home_of, is_linked, start_cluster
from tests.servers.valkey import MEMORY, ValkeySentinel, ValkeyServer, free_port


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[ValkeyServer]]:
    """Start three primaries that share the slots, and one node more that may follow any of them."""
    nodes = start_cluster()
    yield nodes
    for node in nodes:
        node.remove()


@pytest.fixture
def newest(cluster: list[ValkeyServer]) -> Iterator[list[ValkeyServer]]:
    """Return a cluster that can move a slot as a whole: this one if it is Valkey's, else one of the wheel."""
    told = ask(cluster[0], "INFO", "server")
    own = [] if isinstance(told, dict) and "valkey_version" in told else start_cluster(0, kind="valkey")
    yield own or cluster
    for node in own:
        node.remove()


def world_at(url: str) -> World:
    """Open a store."""
    clock = DrivenClock()
    return World(open_store(url, clock=clock), clock)


async def live(world: World) -> None:
    """Let a few jobs run their lives, large batches and waits included."""
    jobs = [world.new(f"t{i % 3}") for i in range(100)]
    assert all(one.is_created for one in (await world.send(*jobs)).enqueued)
    for claim in await world.claim(60):
        await world.settle(claim)
    await world.check_invariants()


async def test_two_installations_live_on_different_nodes(cluster: list[ValkeyServer]) -> None:
    """Whichever node the URL names; every key of an installation is on its own."""
    prefixes = ("one", "two", "three", "four", "five")
    homes = {prefix: home_of(cluster, prefix) for prefix in prefixes}
    assert len({node.port for node in homes.values()}) > 1
    for prefix in prefixes:
        world = world_at(f"{cluster[0].tcp_url}?prefix={prefix}")
        await live(world)
        await world.store.upkeep.aclose()
    for prefix, home in homes.items():
        for node in cluster[:3]:
            with Redis.from_url(node.url) as client:
                assert bool(client.keys(f"{{{prefix}}}:*")) == (node is home)


async def test_those_who_are_sent_elsewhere_together_leave_no_connection_behind(
    cluster: list[ValkeyServer],
) -> None:
    """All but the first find that another has turned to the right node before them."""
    home = home_of(cluster, "crowd")
    other = cluster[(cluster.index(home) + 1) % 3]
    world = world_at(f"{other.tcp_url}?prefix=crowd")
    await asyncio.gather(*(world.status() for _ in range(4)))
    gc.collect()  # warns of what was never closed, and a warning is an error here
    ours = f"laddr=127.0.0.1:{other.port} "
    await_fact(lambda: ours not in str(ask(other, "CLIENT", "LIST", "TYPE", "NORMAL")))
    await world.store.upkeep.aclose()


async def test_while_a_slot_is_moved_key_by_key_nothing_is_done_and_then_work_goes_on(
    cluster: list[ValkeyServer],
) -> None:
    """S66: ASK. Half of an installation would be on either node: nobody may follow, and nothing is torn."""
    home = home_of(cluster, "moved")
    other = cluster[(cluster.index(home) + 1) % 3]
    slot = ask(home, "CLUSTER", "KEYSLOT", "{moved}:")
    world = world_at(f"{home.tcp_url}?prefix=moved")
    await world.enqueue_many(3)
    claim = await world.claim_one()
    ask(other, "CLUSTER", "SETSLOT", slot, "IMPORTING", ask(home, "CLUSTER", "MYID"))
    ask(home, "CLUSTER", "SETSLOT", slot, "MIGRATING", ask(other, "CLUSTER", "MYID"))
    for moved in range(3):
        with pytest.raises(StoreUnavailable, match="its slot is being moved to another node") as caught:
            await (world.enqueue, world.claim, lambda: world.settle(claim))[moved]()
        assert caught.value.retry_safe
        keys = ask(home, "CLUSTER", "GETKEYSINSLOT", slot, 1 if moved < 2 else 1_000)
        assert isinstance(keys, list)
        ask(home, "MIGRATE", "127.0.0.1", other.port, "", 0, 5_000, "KEYS", *keys)
    for node in (other, home):
        ask(node, "CLUSTER", "SETSLOT", slot, "NODE", ask(other, "CLUSTER", "MYID"))
    await world.settle(claim)
    await world.enqueue()
    assert len(await world.claim(9)) == 3
    await world.check_invariants()
    await world.store.upkeep.aclose()
    assert ask(home, "CLUSTER", "COUNTKEYSINSLOT", slot) == 0


async def test_a_slot_that_is_moved_as_a_whole_takes_its_workers_along(newest: list[ValkeyServer]) -> None:
    """S66: as Valkey 9 can; no call is refused for longer than the handover, and nothing is lost."""
    home = home_of(newest, "whole")
    other = newest[(newest.index(home) + 1) % 3]
    slot = ask(home, "CLUSTER", "KEYSLOT", "{whole}:")
    world = world_at(f"{home.tcp_url}?prefix=whole")
    await world.enqueue_many(3)
    ask(home, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", ask(other, "CLUSTER", "MYID"))
    await pipeline_all(world, 3)
    await_fact(lambda: ask(other, "CLUSTER", "COUNTKEYSINSLOT", slot) != 0)
    await_fact(lambda: ask(home, "CLUSTER", "COUNTKEYSINSLOT", slot) == 0)
    await pipeline_all(world, 1)
    assert len(await world.claim(9)) == 7
    await world.check_invariants()
    await world.store.upkeep.aclose()


async def test_a_failover_under_load_loses_nobody_the_way(cluster: list[ValkeyServer]) -> None:
    """S66: the node of an installation dies while jobs come in; its replica takes over and work goes on."""
    home, replica = home_of(cluster, "fail"), cluster[3]
    follow(replica, home)
    seeds = ",".join(f"127.0.0.1:{node.port}" for node in cluster)
    world = world_at(f"redis://{seeds}?prefix=fail")
    await world.enqueue_many(5)
    claims = await world.claim(2)
    with Redis.from_url(home.url) as client:
        await_fact(lambda: client.wait(1, 1_000) == 1)
    home.kill()
    await pipeline_all(world, 10)
    for claim in claims:
        await world.settle(claim)
    assert len(await world.claim(20)) >= 13
    await world.check_invariants()
    await world.store.upkeep.aclose()


async def test_a_sentinel_tells_where_the_service_is_before_and_after_a_failover() -> None:
    """S66: its primary dies; the store asks again, and enters the new one by the servers' own password."""
    locked = ("--requirepass", "served", "--masterauth", "served")
    primary, replica = (ValkeyServer(*locked, folder=MEMORY, port=free_port()) for _ in range(2))
    sentinel = ValkeySentinel(primary, "requirepass watched", "sentinel auth-pass jobs served", folder=MEMORY)
    try:
        primary.start()
        replica.start()
        ask(replica, "REPLICAOF", "127.0.0.1", primary.port, password="served")
        await_fact(lambda: is_linked(replica, "served"))
        sentinel.start()
        await_fact(lambda: bool(ask(sentinel, "SENTINEL REPLICAS", "jobs", password="watched")))
        url = f"redis+sentinel://:served@127.0.0.1:1,127.0.0.1:{sentinel.port}/jobs?prefix=watched"
        stranger = world_at(url)
        with pytest.raises(StoreUnavailable, match="no Sentinel knows where jobs is"):
            await stranger.enqueue()
        world = world_at(f"{url}&sentinel_password=watched")
        await live(world)
        ask(primary, "WAIT", 1, 5_000, password="served")
        primary.kill()
        await pipeline_all(world, 5)
        assert len(await world.claim(9)) >= 5
        await world.check_invariants()
        await world.store.upkeep.aclose()
        await stranger.store.upkeep.aclose()
    finally:
        for server in (sentinel, replica, primary):
            server.remove()


async def test_an_enqueue_can_wait_for_a_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    """S63: `?replicas=1`: it returns when the replica has the job, and says so if that takes too long."""
    monkeypatch.setattr(client_module, "TIMEOUT", 1.0)
    primary, replica = (ValkeyServer(folder=MEMORY, port=free_port()) for _ in range(2))
    try:
        primary.start()
        replica.start()
        ask(replica, "REPLICAOF", "127.0.0.1", primary.port)
        await_fact(lambda: is_linked(replica))
        world = world_at(f"{primary.url}?replicas=1")
        for number in (1, 50):
            await world.enqueue_many(number)
        with Redis.from_url(replica.url) as client:
            assert client.hlen("{fairlane}:h") == 51
        replica.kill()
        new = world.new()
        with pytest.raises(EnqueueUnknown, match="replicas") as caught:
            await world.store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=(new,)))
        assert not caught.value.retry_safe
        assert (await world.get(new.id)).id == new.id
        await world.store.upkeep.aclose()
    finally:
        for server in (replica, primary):
            server.remove()


async def pipeline_all(world: World, number: int) -> None:
    """Enqueue until so many jobs were acknowledged, however often there is no server meanwhile."""
    until = time.monotonic() + PATIENCE
    while number:
        assert time.monotonic() < until, "no server came back"
        with suppress(StoreError):
            await world.store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=(world.new(),)))
            number -= 1
        await asyncio.sleep(0.05)
