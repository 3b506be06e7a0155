"""Counts are exact at every instant: what is summed and what is not yet are read at one look (S51)."""

from __future__ import annotations

import asyncio

from fairlane.model.lifecycle.states import State
from fairlane.store.contract.jobs import CountRequest
from fairlane.store.contract.upkeep import CensusRequest
from tests.contract.world import ALL, World

JOBS = 90


async def test_the_sum_of_all_counts_never_wavers_while_jobs_move(world: World) -> None:
    """S51: claimed, settled, applied, summed up: a job is counted once, whoever looks."""
    for tenant in ("acme", "globex", "initech"):
        await world.enqueue_many(JOBS // 3, tenant)
    is_over = False
    sums: set[int] = set()

    async def move() -> None:
        for _ in range(JOBS // 3):
            await world.run()

    async def tidy() -> None:
        while not is_over:
            await world.prune()
            await world.promote()

    async def look() -> None:
        while not is_over:
            page = await world.store.jobs.count(CountRequest(scope=ALL))
            sums.add(sum(one.jobs for one in page.counts))
            census = await world.store.upkeep.census(CensusRequest(scope=ALL))
            sums.add(sum(census.homes.values()))

    async with asyncio.TaskGroup() as group:
        group.create_task(tidy())
        group.create_task(look())
        await asyncio.gather(move(), move(), move())
        is_over = True
    assert sums == {JOBS}
    assert await world.states() == {State.SUCCEEDED: JOBS}


async def test_what_was_added_up_is_not_added_again(world: World) -> None:
    """S51: after any number of passes the counts are what they were."""
    await world.enqueue_many(5)
    for _ in range(5):
        await world.run()
    before = await world.counts()
    for _ in range(3):
        await world.prune()
        assert await world.counts() == before
