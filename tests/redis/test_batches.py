"""A large batch comes in by many short scripts, and is still there at once or not at all (S12)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from redis import Redis

from fairlane.model.errors import StoreUnavailable
from fairlane.model.job import NewJob
from fairlane.model.journal.facts import over_limit
from fairlane.model.journal.operations import created_entry
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import QueueRules, SubjectKind
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.jobs.large_batch import LargeBatch
from tests.contract.world import ALL, OPERATION, World
from tests.redis.batches import publish
from tests.servers.valkey import ValkeyServer

MANY = 130


def batch(world: World, number: int = MANY, **values: Any) -> tuple[NewJob, ...]:
    """Make more jobs than one script takes, of three tenants."""
    return tuple(world.new(f"t{i % 3}", **values) for i in range(number))


def store_client_of(world: World) -> RedisClient:
    """Return the client of the store, to begin what somebody else must end."""
    return world.store.jobs._client  # type: ignore[attr-defined,no-any-return]


async def begin(world: World, jobs: tuple[NewJob, ...], steps: int, **options: Any) -> None:
    """Let a batch in as a process does that dies after so many steps."""
    store_client = store_client_of(world)
    await publish(store_client, jobs, **options)
    for _ in range(steps):
        await store_client.run("jobs/batch_step")


@pytest.mark.parametrize("steps", range(5))
async def test_whoever_comes_first_brings_a_batch_to_its_end(world: World, steps: int) -> None:
    """S12: its sender died; the next verb, whichever it is, finds all of it."""
    jobs = batch(world)
    await begin(world, jobs, steps)
    assert {job.id for job in await world.find_all()} == {job.id for job in jobs}
    assert [claim.job.tenant for claim in await world.claim(6)] == ["t0", "t1", "t2"] * 2


@pytest.mark.parametrize("steps", [0, 2, 4, 5])
async def test_of_a_batch_with_a_refused_item_nobody_sees_anything(world: World, steps: int) -> None:
    """S12: the last of 130 is one too many; what was in is taken out again, keys included."""
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(max_waiting=MANY))
    first = await world.enqueue("t0")
    before = await world.sight()
    await begin(world, batch(world, dedup_until="settled"), steps)
    assert await world.sight() == before
    assert [claim.job.id for claim in await world.claim(9)] == [first.id]


async def test_every_refusal_of_a_large_batch_is_listed_and_its_keys_are_free(world: World) -> None:
    """S12, S13: with the number of its item, over all parts; then the rest alone comes in."""
    await world.declare(SubjectKind.QUEUE, "full", QueueRules(Limits(waiting=0, on_full="reject")))
    jobs = [
        world.new(
            f"t{i % 3}",
            queue="full" if i in {7, 77, 129} else "default",
            idempotency_key=f"k{i}",
            dedup_key=f"d{i}",
        )
        for i in range(MANY)
    ]
    reply = await world.send(*jobs)
    assert [refusal.index for refusal in reply.refused] == [7, 77, 129]
    assert ((await world.census()).idempotency_keys, (await world.census()).dedup_keys) == (0, 0)
    reply = await world.send(*(job for job in jobs if job.queue == "default"))
    assert [one.is_created for one in reply.enqueued] == [True] * (MANY - 3)


async def test_equal_keys_far_apart_in_a_batch_make_one_job(world: World) -> None:
    """S15: each item sees those before it, of other parts too."""
    jobs = [world.new(idempotency_key=f"k{i % 100}") for i in range(MANY)]
    reply = await world.send(*jobs)
    assert [one.is_created for one in reply.enqueued] == [True] * 100 + [False] * 30
    assert [one.job for one in reply.enqueued[100:]] == [one.job for one in reply.enqueued[:30]]


async def test_a_batch_outlives_the_death_of_the_server_in_its_middle(
    world: World, server: ValkeyServer
) -> None:
    """S12, S63: what was published goes on where it was."""
    jobs = batch(world)
    await begin(world, jobs, 2)
    server.kill()
    server.start()
    with suppress(StoreUnavailable):  # by the connection that was cut
        await world.find_all()
    assert {job.id for job in await world.find_all()} == {job.id for job in jobs}


async def test_what_was_sent_and_never_published_goes_by_itself(
    world: World, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every key is bounded or expires: the sender died before the last word."""
    store_client = store_client_of(world)
    await world.send(world.new())

    async def die(*_: Any, **__: Any) -> None:
        message = "gone"
        raise StoreUnavailable(message)

    monkeypatch.setattr(store_client, "run", die)
    with pytest.raises(StoreUnavailable):
        await publish(store_client, batch(world))
    monkeypatch.undo()
    staged = [key for key in client.scan_iter() if b":st:" in key]
    assert [client.pttl(key) > 0 for key in staged] == [True, True]
    assert len(await world.find_all()) == 1


async def test_a_batch_that_meets_another_one_brings_both_in(world: World) -> None:
    """S12: what it had sent for itself served the other; then it is its turn."""
    first, second = batch(world), batch(world)
    await begin(world, first, 1)
    reply = await world.send(*second)
    assert [one.is_created for one in reply.enqueued] == [True] * MANY
    assert {job.id for job in await world.find_all()} == {job.id for job in (*first, *second)}


async def test_a_batch_goes_out_at_once_to_a_server_that_knows_the_scripts(
    world: World, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One exchange; a server that has forgotten them is told, and takes it all the same."""
    store_client, calls = store_client_of(world), 0
    call_server = store_client._call

    async def count(call: Any) -> Any:
        nonlocal calls
        calls += 1
        return await call_server(call)

    await world.send(*batch(world))
    monkeypatch.setattr(store_client, "_call", count)
    await world.send(*batch(world))
    assert calls == 1
    client.script_flush()
    reply = await world.send(*batch(world))
    assert [one.is_created for one in reply.enqueued] == [True] * MANY
    assert calls > 2
    assert len(await world.find_all()) == 3 * MANY


async def test_a_batch_of_which_a_part_is_gone_is_not_let_in_and_leaves_nothing(
    world: World, client: Redis
) -> None:
    """It took too long: the other parts go by themselves, as they would have."""
    store_client = store_client_of(world)
    lost = LargeBatch(store_client, EnqueueRequest(scope=ALL, jobs=batch(world)))
    *kept, _ = lost._stage()
    await store_client.pipeline_all(lambda: kept, lost._on_reply)
    assert not await store_client.run(*lost._publish)
    assert {client.pttl(key) > 0 for _, key, *_ in kept} == {True}
    assert await world.find_all() == []


@pytest.mark.parametrize("steps", [0, 1, 9])
async def test_a_large_batch_warns_once_of_each_tenant_and_queue(world: World, steps: int) -> None:
    """S76: over all its parts, with the number of jobs above the limit, and whoever brings it in."""
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(Limits(waiting=20, on_full="warn")))
    jobs = tuple(world.new(f"t{i % 3}", created_by=f"u{i}") for i in range(MANY))
    await begin(world, jobs, steps)
    told = await world.appended("events")
    expected = (
        over_limit("t0", "default", 44, 20, 24, "u129"),
        over_limit("t1", "default", 43, 20, 23, "u127"),
    )
    assert sorted(told, key=lambda one: str(one.tenant))[:2] == list(expected)
    assert [one.count for one in told if one.tenant == "t2"] == [23]
    assert len(told) == 3


@pytest.mark.parametrize("steps", [0, 1, 9])
async def test_a_large_batch_of_an_operator_leaves_an_entry_for_each_job(world: World, steps: int) -> None:
    """S60: also if somebody else brings it in; what an earlier job answers for leaves none."""
    first = await world.enqueue("t0", dedup_key="taken")
    jobs = (
        *(world.new(f"t{i % 3}", delay=i % 2, parent_id=first.id) for i in range(MANY)),
        world.new("t0", dedup_key="taken"),
    )
    await begin(world, jobs, steps, operation=OPERATION)
    made = {job.id: job for job in await world.find_all() if job.id != first.id}
    told = await world.appended("audit")
    assert told == [created_entry(OPERATION, made[new.id]) for new in jobs[:-1]]


async def test_a_large_batch_that_is_refused_leaves_nothing_in_the_journals(world: World) -> None:
    """S12, S60, S76: the last item is one too many."""
    await world.declare(
        SubjectKind.QUEUE, "default", QueueRules(Limits(waiting=20, on_full="warn"), max_waiting=MANY)
    )
    jobs = tuple(world.new(f"t{i % 3}") for i in range(MANY + 1))
    await begin(world, jobs, 1, operation=OPERATION)
    assert await world.find_all() == []
    assert [await world.appended("audit"), await world.appended("events")] == [[], []]
