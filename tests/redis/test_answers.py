"""Answers by which a server says that it does nothing now: one clear error each, and nothing is torn (S66).

MOVED, ASK and CLUSTERDOWN are in test_clusters, OOM and NOSCRIPT in test_servers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from fairlane.model.errors import StoreBusy, StoreError, StoreUnavailable
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.jobs import EnqueueRequest
from tests.contract.world import ALL, World
from tests.servers.valkey import ValkeyServer


@contextmanager
def made_a_replica(server: ValkeyServer) -> Iterator[None]:
    """Let a failover be in the middle: the server is no primary any more."""
    with Redis.from_url(server.url) as client:
        client.replicaof("127.0.0.1", "1")
        yield
        client.replicaof("NO", "ONE")


@contextmanager
def without_its_replicas(server: ValkeyServer) -> Iterator[None]:
    """Let it want replicas that are not there."""
    with Redis.from_url(server.url) as client:
        client.config_set("min-replicas-to-write", "1")
        yield
        client.config_set("min-replicas-to-write", "0")


@contextmanager
def at_a_script_of_others(server: ValkeyServer) -> Iterator[None]:
    """Let somebody's script run and not end."""
    with Redis.from_url(server.url) as client, Redis.from_url(server.url) as other:
        client.config_set("busy-reply-threshold", "10")
        thread = threading.Thread(target=partial(spin, other))
        thread.start()
        while not is_busy(client):
            pass
        yield
        client.script_kill()
        thread.join()


def spin(client: Redis) -> None:
    """Run a script until somebody ends it."""
    with suppress(ResponseError):
        client.eval("while true do end", 0)


def is_busy(client: Redis) -> bool:
    """Whether the server answers to nobody."""
    try:
        client.ping()
    except ResponseError as error:
        return str(error).startswith("BUSY")
    return False


@contextmanager
def at_loading(server: ValkeyServer) -> Iterator[None]:
    """Let it start again, and read its jobs slowly."""
    with Redis.from_url(server.url) as client:
        client.mset({f"ballast {number}": "x" * 1_024 for number in range(4_000)})
        client.bgrewriteaof()
        while client.info("persistence")["aof_rewrite_in_progress"]:
            pass
    server.kill()
    server.settings += ("--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024")
    thread = threading.Thread(target=server.start)
    thread.start()
    while not server.is_loading():
        pass
    yield
    with Redis.from_url(server.url) as client:
        client.config_set("key-load-delay", "0")
    thread.join()


Condition = Callable[[ValkeyServer], AbstractContextManager[None]]
CASES: list[tuple[Condition, type[StoreError], str]] = [
    (made_a_replica, StoreUnavailable, "read only replica"),
    (without_its_replicas, StoreUnavailable, "NOREPLICAS"),
    (at_a_script_of_others, StoreBusy, "BUSY"),
    (at_loading, StoreUnavailable, "loading the dataset"),
]


@pytest.mark.parametrize(
    ("condition", "kind", "words"), CASES, ids=[condition.__name__ for condition, *_ in CASES]
)
async def test_a_server_that_does_nothing_now_says_so_and_nothing_is_torn(
    world: World, server: ValkeyServer, condition: Condition, kind: type[StoreError], words: str
) -> None:
    """An enqueue was not stored and may be repeated; a worker settles what it holds when all is well."""
    for number in range(10):
        await world.enqueue(f"t{number}")
    claim = await world.claim_one()
    new = world.new()
    request = EnqueueRequest(scope=ALL, jobs=(new,))
    batch = EnqueueRequest(scope=ALL, jobs=tuple(world.new() for _ in range(100)))
    with condition(server):
        with suppress(StoreError):  # by connections that a restart has cut
            await world.renew()
        for verb in (
            lambda: world.store.jobs.enqueue(request),
            lambda: world.store.jobs.enqueue(batch),
            lambda: world.settle(claim),
            world.claim,
        ):
            with pytest.raises(kind, match=words) as caught:
                await verb()
            assert caught.value.retry_safe
            assert type(caught.value) is kind
    assert await world.settle(claim) is State.SUCCEEDED
    assert len(await world.find_all()) == 10
    assert [one.is_created for one in (await world.store.jobs.enqueue(request)).enqueued] == [True]
