"""The next few jobs of a strand are in its record, where claims find them; its set has the others.

Whatever is done to a strand then, its order is that of the oracle (S41, S42): one history, played to both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeAlias
from uuid import UUID

import pytest
from redis import Redis

from tests.contract.world import HANDED_BACK, SNOOZED, World
from tests.oracle.clock import DrivenClock
from tests.oracle.store import OracleStore
from tests.redis.rendering import rendered

STEPS = 60
Step: TypeAlias = Callable[[Random, World, list[UUID]], Awaitable[object]]


async def enqueue(draw: Random, world: World, _: list[UUID]) -> None:
    """Bring some, each before, among or behind those that wait."""
    for _number in range(draw.randint(1, 4)):
        task = "print" if draw.random() < 0.02 else "send"  # with another strand it prefetches no more
        await world.enqueue(priority=draw.randint(-2, 2), task=task)


async def claim(draw: Random, world: World, _: list[UUID]) -> object:
    """Claim some; of these some come back, at once or when it is time."""
    claims = await world.claim(draw.randint(1, 5))
    for one in claims:
        if draw.random() < 0.5:
            await world.settle(one, draw.choice((HANDED_BACK, SNOOZED)))
    return [one.job.id for one in claims]


async def cancel(draw: Random, world: World, waiting: list[UUID]) -> object:
    """Take one out, wherever it is."""
    return await world.cancel(draw.choice(waiting)) if waiting else None


async def edit(draw: Random, world: World, waiting: list[UUID]) -> object:
    """Move one to another place."""
    return await world.edit(draw.choice(waiting), priority=draw.randint(-3, 3)) if waiting else None


async def pass_time(draw: Random, world: World, _: list[UUID]) -> None:
    """Let what was put off be due."""
    world.advance(draw.choice((0.001, 60)))


async def seen(world: World) -> tuple[list[UUID], list[object]]:
    """Return the order of all that waits, and how many go before each."""
    order = [job.id for job in await world.peek(100)]
    return order, [await world.explain(id) for id in order]


@pytest.mark.parametrize("prefetch", [1, 2, 7])
@pytest.mark.parametrize("seed", range(4))
async def test_a_strand_keeps_its_order_whatever_is_done_to_it(
    world: World, prefetch: int, seed: int
) -> None:
    """S41, S42: jobs come before it, leave its middle, move and return: peeks, claims and counts agree."""
    clock = DrivenClock()
    oracle = World(OracleStore(clock), clock)
    with rendered(PREFETCH=prefetch):
        draws = Random(seed), Random(seed)
        for number in range(STEPS):
            step = draws[0].choice(STEPS_OF_ALL)
            assert draws[1].choice(STEPS_OF_ALL) is step
            order = (await seen(oracle))[0]
            done = [await step(draw, one, order) for draw, one in zip(draws, (world, oracle), strict=True)]
            assert done[0] == done[1], (seed, number, step.__name__)
            assert await seen(world) == await seen(oracle), (seed, number, step.__name__)


STEPS_OF_ALL: tuple[Step, ...] = (enqueue, enqueue, claim, claim, cancel, edit, edit, pass_time)


async def test_claims_ask_the_set_of_a_strand_once_for_eight_jobs(world: World, client: Redis) -> None:
    """And a strand whose last jobs are in its record has no set."""
    await world.enqueue_many(17)
    asked = []
    for _ in range(17):
        before = client.info("commandstats").get("cmdstat_zrem", {"calls": 0})["calls"]
        await world.claim()
        asked.append(client.info("commandstats").get("cmdstat_zrem", {"calls": 0})["calls"] - before)
    assert list(client.scan_iter(match="*:s:*")) == []
    assert sum(asked) <= 17 + 2 + 1  # the ready index for each, the set twice


async def test_jobs_before_the_prefetched_make_a_record_no_longer(world: World, client: Redis) -> None:
    """A thousand urgent jobs, one by one, before those that a record has: it has at most fourteen of them."""
    await world.enqueue_many(20)
    await world.claim()
    await world.enqueue_many(200, priority=1)
    for priority in range(2, 60):
        await world.enqueue(priority=priority)
    (record,) = client.hvals(next(client.scan_iter(match="*:t:default")))
    assert len(record) < 100 + 14 * 24
    assert [job.priority for job in await world.peek(58)] == list(range(59, 1, -1))


async def test_a_batch_that_is_refused_leaves_the_prefetched_as_they_were(world: World) -> None:
    """S12: jobs that were let in before another one was refused go out again, also prefetched ones."""
    jobs = await world.enqueue_many(20)
    await world.claim()
    before = await seen(world)
    reply = await world.send(*(world.new(priority=2) for _ in range(5)), world.new(id=jobs[5].id))
    assert [refusal.index for refusal in reply.refused] == [5]
    assert await seen(world) == before
