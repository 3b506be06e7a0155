"""A scheduler that is killed anywhere doubles no slot and loses none (S57, S61)."""

from __future__ import annotations

from collections import Counter

import pytest

from fairlane.duties.schedules import fan_out
from fairlane.model.policy.overrides import Subject, SubjectKind, TenantRules
from tests.contract.schedules.scene import slots
from tests.contract.world import World
from tests.duties.schedules.mortal import Killed, Mortal
from tests.duties.schedules.scene import (
    MINUTE,
    declare,
    fire_of,
    jobs_of,
    publish,
    spec,
    states,
    to_minute,
    until_rest,
)


@pytest.mark.parametrize("is_sent", [True, False], ids=["after", "before"])
async def test_a_scheduler_killed_between_any_two_calls(
    world: World, monkeypatch: pytest.MonkeyPatch, *, is_sent: bool
) -> None:
    """Each slot has one job, for its tenant or for each of many, whatever call was the last one."""
    monkeypatch.setattr(fan_out, "TENANTS", 2)
    await world.put({Subject(SubjectKind.TENANT, f"t{one}"): TenantRules() for one in range(5)})
    await publish(world)
    to_minute(world)
    began_at = world.now
    await declare(
        world, spec("one", pause_after=5), spec("two", tenant="globex"), spec("many", for_tenants={})
    )
    runs = calls = 0
    is_killed = True
    while is_killed:
        world.advance(60)
        runs += 1
        try:
            await until_rest(fire_of(world), Mortal(world.store, calls, is_sent=is_sent))
            is_killed = False
        except Killed:
            calls += 1
        world.advance(1)
        await until_rest(fire_of(world), world.store)
        world.advance(59)
        await until_rest(fire_of(world), world.store)
    assert calls > 15
    instants = [began_at + run * MINUTE for run in range(1, 2 * runs + 1)]
    for name in ("one", "two", "many"):
        assert await states(world, name) == [(at, "enqueued") for at in instants]
    made = Counter((job.created_by, job.tenant) for job in await jobs_of(world))
    assert set(made.values()) == {2 * runs}
    assert len(made) == 7
    assert {slot.fan_out.enqueued for slot in await slots(world, "many") if slot.fan_out} == {5}
