"""An application whose enqueue was cut off twice repeats it by the error, and there is one job (S15)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

import fairlane.store.redis.jobs.enqueue as enqueueing
from fairlane import EnqueueUnknown, Fairlane
from fairlane.store.redis.jobs.large_batch import LargeBatch
from fairlane.store.redis.pipeline import Command
from tests.contract.world import World
from tests.servers.proxy import Proxy, proxied
from tests.servers.valkey import HASTY, MEMORY, ValkeyServer, free_port

MARK = "cut the line here"
WAYS = ["lost on the way there", "lost on the way back"]


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    """A server that listens on a port."""
    server = ValkeyServer(*HASTY, folder=MEMORY, port=free_port())
    server.start()
    yield server
    server.remove()


@pytest.fixture
async def network(server: ValkeyServer, world: World) -> AsyncIterator[Proxy]:
    """A way to the server that can be cut; its scripts are there."""
    await world.enqueue()
    async with proxied(server.port) as network:
        yield network


@pytest.mark.parametrize("count", [1, 200])
@pytest.mark.parametrize("way", WAYS)
async def test_an_enqueue_that_is_cut_off_twice_is_repeated_by_its_error(
    world: World, network: Proxy, way: str, count: int
) -> None:
    """S15: whether it was stored or not, by one script or by many."""
    app = Fairlane(f"redis://127.0.0.1:{network.port}", config={})

    @app.task(name="write")
    async def write(text: str) -> None: ...

    before = len(await world.find_all())
    async with app:
        calls = [write.using(tenant="acme").bind(f"{n}") for n in range(count - 1)]
        calls.append(write.using(tenant="acme").bind(MARK))
        for _ in range(2):
            (network.cut_before if way == WAYS[0] else network.cut_after)(MARK.encode())
        with pytest.raises(EnqueueUnknown) as caught:
            await app.aenqueue_many(calls)
        assert network.cuts_made == 2
        jobs = await caught.value.arepeat()
        assert [job.id for job in jobs] == list(caught.value.ids)
        assert all(job.created for job in jobs)
    assert len(await world.find_all()) == before + count


class DemotedInBetween(LargeBatch):
    """A batch whose server has become a replica after it was published: it takes no fold any more."""

    def _commands(self) -> Iterator[Command]:
        *staged, publish = list(super()._commands())[: len(self._parts) + 1]
        yield from staged
        yield publish
        yield "EVAL", "return redis.error_reply('READONLY You can not write against a read only replica.')", 0


async def test_a_batch_that_was_published_before_a_failover_is_unknown(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S15: the server refuses to go on, but whoever comes next may bring the batch to its end."""
    await world.enqueue_many(200)  # so that the server has the scripts
    monkeypatch.setattr(enqueueing, "LargeBatch", DemotedInBetween)
    with pytest.raises(EnqueueUnknown):
        await world.enqueue_many(200)
    monkeypatch.undo()
    await world.enqueue()
    assert len(await world.find_all()) == 401
