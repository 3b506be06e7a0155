"""Repair compares what is derived from unfinished jobs with the jobs, and makes it anew (S90).

What is wrong is told and mended in tests/repair; here nothing is wrong, and so nothing may change.
"""

from __future__ import annotations

import pytest

from fairlane.model.instants import HOUR, MINUTE
from fairlane.model.journal.operations import Operation
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.overrides import PolicyChange, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import MAX_BATCH_SIZE
from fairlane.store.contract.repair import MAX_COMPARED, RepairReply, RepairRequest
from tests.contract.world import ALL, SUCCEEDED, World, failed

ANN = Operation(action="doctor.repair", actor="ann", origin="cli")


async def repair(
    world: World, tenant: str = "acme", queue: str = "default", *, scope: Scope = ALL, restores: bool = True
) -> RepairReply:
    """Repair a tenant's derived data in a queue, as an operator does."""
    request = RepairRequest(scope=scope, queue=queue, tenant=tenant, restores=restores, operation=ANN)
    return await world.store.upkeep.repair(request)


async def crowd(world: World) -> int:
    """Make jobs in every state, some with an expiry, some tried before; return how many are unfinished."""
    for task in ("send", "sort", "send"):
        await world.enqueue(task=task)
        await world.enqueue("globex", task=task)
    await world.enqueue(delay=HOUR)
    await world.enqueue(expires_in=2 * HOUR)
    await world.enqueue(delay=HOUR, expires_in=2 * HOUR)
    await world.enqueue(queue="bulk")
    await world.run(SUCCEEDED)
    await world.run(failed())
    await world.claim(3)
    return sum(
        job.state in {State.DELAYED, State.READY, State.RUNNING} and job.queue == "default"
        for job in await world.find_all(Scope("acme"))
    )


@pytest.mark.parametrize("restores", [True, False])
async def test_where_nothing_is_wrong_nothing_is_told_and_nothing_changes(
    world: World, *, restores: bool
) -> None:
    """S90: not even an entry in the audit."""
    jobs = await crowd(world)
    before = await world.sight()
    assert await repair(world, restores=restores) == RepairReply(jobs)
    assert await world.sight() == before
    assert await world.appended("audit") == []


async def test_what_is_parked_stays_parked(world: World) -> None:
    """S90, S42: a pause, a full gate and a full tenant are no flaws."""
    await world.put_gate("door", "send")
    await world.override(SubjectKind.GATE, "door", PolicyChange(limit=1))
    await world.enqueue_many(3, task="send")
    await world.enqueue_many(3, task="sort")
    await world.claim(2)
    assert await world.claim(1) != []
    assert (await repair(world)).flaws == ()
    await world.pause(SubjectKind.TENANT, "acme")
    assert await world.claim() == []
    before = await world.sight()
    assert await repair(world) == RepairReply(6)
    assert await world.sight() == before


@pytest.mark.parametrize("tasks", [1, 16, 17, 40])
async def test_a_tenant_with_many_tasks_is_compared_as_well(world: World, tasks: int) -> None:
    """S90: however a store keeps them, and also after some have gone again."""
    await world.send(*(world.new(task=f"task-{number % tasks}") for number in range(3 * tasks)))
    assert await repair(world) == RepairReply(3 * tasks)
    await world.claim(2 * tasks)
    assert await repair(world) == RepairReply(3 * tasks)


async def test_jobs_that_went_from_state_to_state_are_compared_as_well(world: World) -> None:
    """S90: promoted, taken back, edited, cancelled."""
    jobs = await world.enqueue_many(12)
    await world.enqueue_many(3, delay=MINUTE)
    await world.claim(3)
    await world.edit(jobs[5].id, priority=50)
    await world.cancel(jobs[6].id)
    world.advance(61)
    await world.promote()
    await world.lose()
    assert await repair(world) == RepairReply(14)


async def test_another_tenant_s_jobs_do_not_exist(world: World) -> None:
    """S90, S9: nor does a queue or a tenant that has none."""
    await crowd(world)
    assert await repair(world, scope=Scope("globex")) == RepairReply(0)
    assert await repair(world, "initech") == RepairReply(0)
    assert await repair(world, queue="nowhere") == RepairReply(0)
    assert (await repair(world, scope=Scope("acme"))).jobs == (await repair(world)).jobs


async def test_too_many_jobs_are_not_compared_in_one_step(world: World) -> None:
    """S90: the answer says so; one job less, and they are."""
    left = MAX_COMPARED + 1
    while left:
        await world.send(*(world.new() for _ in range(min(left, MAX_BATCH_SIZE))))
        left -= min(left, MAX_BATCH_SIZE)
    assert await repair(world) == RepairReply(None)
    await world.run(SUCCEEDED)
    assert await repair(world) == RepairReply(MAX_COMPARED)
