"""What a server can do to the store, and what it then says: lost scripts, restarts, cuts, no memory (S66)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from uuid import UUID

import pytest
from redis import Redis

import fairlane.store.redis.client as client_module
from fairlane.model.errors import EnqueueUnknown, StoreBusy, StoreError, StoreUnavailable
from fairlane.model.job import NewJob
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.opening import open_store
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.pipeline import send
from tests.contract.world import ALL, World
from tests.redis.batches import publish
from tests.redis.test_batches import store_client_of
from tests.servers.valkey import ValkeyServer


async def test_scripts_that_the_server_forgot_are_sent_again(world: World, client: Redis) -> None:
    """S66: as after a restart or a failover; nobody notices."""
    await world.enqueue_many(3)
    client.script_flush()
    claim = await world.claim_one()
    client.script_flush()
    assert await world.settle(claim) is State.SUCCEEDED
    client.script_flush()
    await world.enqueue()
    assert len(await world.claim(9)) == 3


async def test_cut_connections_are_opened_anew(world: World, client: Redis) -> None:
    """S66: at most the call that met the cut says so, and that it may be repeated."""
    await world.enqueue()
    client.client_kill_filter(_type="normal", skipme=True)
    with suppress(StoreUnavailable):
        await world.renew()
    assert [claim.job.task for claim in await world.claim(1)] == ["noop"]


async def test_without_a_server_each_verb_says_so_and_goes_on_when_it_is_back(
    world: World, server: ValkeyServer
) -> None:
    """S66: one clear error that names the place and says that a repeat is safe; nothing was lost."""
    job = await world.enqueue()
    claim = await world.claim_one()
    server.kill()
    for verb in (world.claim, world.promote, lambda: world.renew(claim), lambda: world.get(job.id)):
        with pytest.raises(StoreUnavailable, match="socket") as caught:
            await verb()
        assert caught.value.retry_safe
    server.start()
    assert await world.settle(claim) is State.SUCCEEDED


async def test_an_answer_that_comes_too_late_is_nobody_elses(
    world: World, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S66: a server that stands still is busy, and what it says afterwards answers no other question."""
    job = await world.enqueue()
    monkeypatch.setattr(client_module, "send", lambda link, command, *_: send(link, command, 0.1))
    client.client_pause(700, all=True)
    with pytest.raises(StoreBusy, match="no answer in time"):
        await world.get(job.id)
    monkeypatch.undo()
    for _ in range(5):
        assert (await world.get(job.id)).id == job.id
        assert list((await world.counts()).values()) == [1]


async def test_a_cancelled_call_ends_cancelled_whenever_that_comes(world: World) -> None:
    """A duty or a lane that is told to stop must hear of it, also if its answer is there at that moment."""
    job = await world.enqueue()
    for steps in range(40):
        task = asyncio.ensure_future(world.get(job.id))
        for _ in range(steps):
            await asyncio.sleep(0)
        is_late = task.done()
        task.cancel()
        await asyncio.wait([task])
        assert is_late or task.cancelled(), steps


async def test_an_enqueue_whose_answer_was_lost_is_unknown_and_can_be_repeated(
    world: World, server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S15: the server died after it had written; the repeat under the same id finds the first."""
    new = world.new()
    request = EnqueueRequest(scope=ALL, jobs=(new,))
    await world.enqueue()  # so that a connection is open
    _die_before_answering(monkeypatch, server)
    with pytest.raises(EnqueueUnknown) as caught:
        await world.store.jobs.enqueue(request)
    assert not caught.value.retry_safe
    monkeypatch.undo()
    server.start()
    repeated = EnqueueRequest(scope=ALL, jobs=(new,), is_repeated=True)
    reply = await world.store.jobs.enqueue(repeated)
    assert [(one.job.id, one.is_created) for one in reply.enqueued] == [(new.id, True)]


def _die_before_answering(monkeypatch: pytest.MonkeyPatch, server: ValkeyServer) -> None:
    """Let a server write what it is sent, and die before it can answer."""
    from redis.asyncio.connection import AbstractConnection  # noqa: PLC0415

    read = AbstractConnection.read_response

    async def die(self: AbstractConnection, **options: object) -> object:
        await read(self)
        server.kill()
        return await read(self, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(AbstractConnection, "read_response", die)


async def test_a_server_without_memory_takes_nothing_and_half_of_nothing(world: World, client: Redis) -> None:
    """S12: the error says why; what is there goes on as soon as there is room."""
    job = await world.enqueue()
    client.config_set("maxmemory", "1")
    with pytest.raises(StoreUnavailable, match="memory"):
        await world.send(*(world.new() for _ in range(100)))
    client.config_set("maxmemory", "0")
    assert await world.find_all() == [job]


async def test_a_full_server_lets_what_is_there_go_on(world: World, client: Redis) -> None:
    """Only new jobs are refused: the others are claimed, settled and pruned, or it would be full for ever."""
    await world.enqueue_many(3)
    lost = await world.claim_one()
    client.config_set("maxmemory", "1")
    await world.register("w2")
    for claim in await world.claim(2):
        await world.renew(claim)
        assert await world.settle(claim) is State.SUCCEEDED
    with pytest.raises(StoreUnavailable, match="memory"):
        await world.enqueue()
    world.advance(3_600)
    assert [one.id for one in (await world.reclaim()).lost] == [lost.job.id]
    await world.prune(succeeded=0)
    await world.cancel(lost.job.id)
    client.config_set("maxmemory", "0")
    assert [job.state for job in await world.find_all()] == [State.CANCELLED]


async def test_a_full_server_lets_dead_letters_be_decided_and_deleted_but_not_run_again(
    world: World, client: Redis
) -> None:
    """S75: what is deleted makes room, a new job would take some; nothing of it is half done."""
    letters = [await world.die() for _ in range(3)]
    before = await world.sight()
    client.config_set("maxmemory", "1")
    with pytest.raises(StoreUnavailable, match="memory"):
        await world.reprocess(world.again(letters[0]))
    assert await world.sight() == before
    assert [one.answer for one in await world.review("resolve", letters[1].id)] == ["done"]
    assert await world.delete(letters[2].id) == (letters[2].id,)
    assert len(await world.number("events")) == 5
    client.config_set("maxmemory", "0")
    assert [one.answer for one in await world.reprocess(world.again(letters[0]))] == ["reprocessed"]


async def test_a_batch_that_is_on_its_way_comes_in_though_the_server_is_full(
    world: World, client: Redis
) -> None:
    """Nothing else is done before it: it must not stand in the way of what makes room."""
    jobs = tuple(world.new() for _ in range(100))
    await publish(store_client_of(world), jobs)
    client.config_set("maxmemory", "1")
    assert len(await world.claim(110)) == 100
    client.config_set("maxmemory", "0")


async def test_what_is_no_server_at_all_says_so() -> None:
    """S66: before anything was sent, so that a repeat is safe, of an enqueue too."""
    store = open_store("unix:///nowhere/at/all.socket")
    new = NewJob(id=UUID(int=1), tenant="a", queue="q", task="t", payload=b"", checksum=0)
    with pytest.raises(StoreUnavailable) as caught:
        await store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=(new,)))
    assert caught.value.retry_safe
    await store.upkeep.aclose()


async def test_a_wrong_answer_of_the_server_is_an_error_that_must_not_be_repeated(world: World) -> None:
    """S66: a key of another kind under our name is nobody's outage."""
    store_client: RedisClient = world.store.jobs._client  # type: ignore[attr-defined]
    await store_client.ask("SET", store_client.keys("heads"), "not a hash")
    with pytest.raises(StoreError) as caught:
        await world.enqueue()
    assert not isinstance(caught.value, StoreUnavailable | EnqueueUnknown)
    await store_client.ask("DEL", store_client.keys("heads"))


async def test_nothing_acknowledged_is_lost_by_kills_when_each_write_is_synced(
    world: World, server: ValkeyServer
) -> None:
    """S63: `appendfsync always`; the server is killed while jobs come in, and again."""
    acknowledged: set[UUID] = set()

    async def pipeline_all(most: int) -> None:
        with suppress(StoreError):
            while True:
                new = world.new()
                await world.store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=(new,)))
                acknowledged.add(new.id)
                if len(acknowledged) == most:
                    server.kill()

    for most in (30, 60, 90):
        await asyncio.gather(pipeline_all(most), pipeline_all(most), pipeline_all(most))
        server.start()
    assert len(acknowledged) >= 90
    assert acknowledged <= {job.id for job in await world.find_all()}
