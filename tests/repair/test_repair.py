"""Each damage is found, told, and mended; no job is changed, lost or run twice (S90)."""

from __future__ import annotations

import pytest

from fairlane.model.instants import HOUR, MINUTE
from fairlane.model.lifecycle.states import State
from fairlane.model.scope import Scope
from fairlane.store.contract.repair import RepairReply
from tests.contract.upkeep.test_repair import repair
from tests.contract.world import World
from tests.repair.damage import damage

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def crowd(world: World) -> None:
    """Make 18 jobs of one tenant and queue: ready in two tasks, delayed, expiring, running; and others."""
    await world.enqueue_many(14, task="send")
    await world.enqueue(task="sort")
    await world.enqueue_many(2, delay=MINUTE)
    await world.enqueue(expires_in=HOUR)
    await world.claim(2)
    await world.enqueue_many(2, "globex")
    await world.enqueue(queue="bulk")


async def test_a_damage_is_found_and_mended_and_every_job_runs(world: World, case: tuple[str, str]) -> None:
    """What was found is what is told of the mending, and one entry of the audit says who did it."""
    await crowd(world)
    before = {job.id: job for job in await world.find_all()}
    await damage(world.store, *case)
    found = await repair(world, restores=False)
    assert found.jobs == 18
    assert found.flaws
    assert not found.is_restored
    assert await repair(world, restores=False) == found
    assert await repair(world) == RepairReply(18, found.flaws, is_restored=True)
    assert await repair(world) == RepairReply(18)
    assert {job.id: job for job in await world.find_all()} == before
    (entry,) = await world.appended("audit")
    assert (entry.kind, entry.subject, entry.tenant) == ("doctor.repair", "queue default", "acme")
    await _mend_the_others(world)
    await _run_everything(world)


async def _mend_the_others(world: World) -> None:
    """Some damages are not of one tenant."""
    await repair(world, "globex")
    await repair(world, queue="bulk")


async def _run_everything(world: World) -> None:
    world.advance(61)
    await world.register("w2")
    await world.promote()
    ran = set()
    for _ in range(40):
        claims = await world.claim(4, worker="w2") + await world.claim(4, "bulk", worker="w2")
        ran |= {claim.job.id for claim in claims}
        for claim in claims:
            await world.settle(claim, worker="w2")
        await world.reclaim()
        if not claims and len(ran) == 21:
            break
    assert {job.id for job in await world.find_all()} == ran
    assert {job.state for job in await world.find_all()} == {State.SUCCEEDED}


async def test_the_damage_of_one_tenant_is_mended_in_its_own_scope(
    world: World, case: tuple[str, str]
) -> None:
    """Under the scope of another nothing is found, and nothing is mended."""
    await crowd(world)
    await damage(world.store, *case)
    assert await repair(world, scope=Scope("globex")) == RepairReply(0)
    assert (await repair(world, scope=Scope("acme"))).is_restored
    await _mend_the_others(world)
