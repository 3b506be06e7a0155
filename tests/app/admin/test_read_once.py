"""Counters are read once for one page, and for nobody else."""

from __future__ import annotations

import asyncio

from fairlane import Fairlane, State, Task
from fairlane.app.admin.read_once import once, read_once
from tests.app.world import World


async def _ready(app: Fairlane) -> int:
    return sum(queue.counts[State.READY] for queue in await app.queues.alist())


async def test_counters_are_read_once_inside_and_each_time_outside(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """What is enqueued meanwhile is seen by the next page, not by half of this one."""
    await task.aenqueue("x")
    with read_once():
        assert await _ready(app) == 1
        await task.aenqueue("y")
        assert await _ready(app) == 1
        assert (await app.jobs.acount()).total == 1
    assert (await app.jobs.acount()).total == 2
    assert await _ready(app) == 2


async def test_one_queue_and_one_tenant_are_told_apart(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """A kept reading of all queues answers for one of them; one of a tenant answers for no other."""
    await task.using(tenant="acme").aenqueue("x")
    await task.using(tenant="globex").aenqueue("y")
    with read_once():
        assert (await app.jobs.acount(queue="default")).total == 2
        assert (await app.jobs.acount()).total == 2
        assert (await app.jobs.acount(queue="default")).total == 2
        assert (await app.jobs.acount(queue="other")).total == 0
        assert (await app.jobs.acount(tenant="acme")).total == 1
        assert (await app.jobs.acount(tenant="nobody")).total == 0


async def test_who_asks_meanwhile_waits_for_the_same_reading() -> None:
    """Parts of a page that are read at the same time do not read twice."""
    asked: list[int] = []
    begun = asyncio.Event()

    async def read() -> int:
        asked.append(1)
        await begun.wait()
        return len(asked)

    with read_once():
        first = asyncio.ensure_future(once("key", read))
        second = asyncio.ensure_future(once("key", read))
        await asyncio.sleep(0)
        begun.set()
        assert (await first, await second) == (1, 1)
    assert await once("key", read) == 2
