"""One slot makes a job for each of many tenants (S57)."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from fairlane.duties.schedules import fan_out
from fairlane.model.instants import HOUR, SECOND
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import Hold, QueueRules, Subject, SubjectKind, TenantRules
from fairlane.model.schedule.records import FanOut
from fairlane.model.schedule.slot_jobs import offset_of
from fairlane.store.contract.policies import HoldRequest
from tests.contract.schedules.scene import slots
from tests.contract.world import ALL, World
from tests.duties.schedules.scene import (
    change,
    declare,
    fire_of,
    jobs_of,
    publish,
    spec,
    to_minute,
    until_rest,
)

PRO = {"plan": "pro"}


async def tenants(world: World, count: int, labels: dict[str, str] = PRO) -> list[str]:
    """Declare tenants with labels."""
    names = [f"t{number:03}" for number in range(count)]
    rules = TenantRules(labels=labels)
    await world.put({Subject(SubjectKind.TENANT, name): rules for name in names})
    return names


async def test_each_declared_tenant_with_the_labels_has_one_job(world: World) -> None:
    """S57: not one that is only paused, has other labels, or has jobs; one slot says how many."""
    names = await tenants(world, 3)
    await world.put({Subject(SubjectKind.TENANT, "free"): TenantRules(labels={"plan": "free"})})
    await world.enqueue("undeclared", queue="other")
    hold = HoldRequest(scope=ALL, subject=Subject(SubjectKind.TENANT, "paused"), who="ann", reason="so")
    await world.store.policies.pause(hold)
    await publish(world)
    to_minute(world)
    await declare(world, spec(for_tenants=PRO), spec("all", for_tenants={}))
    world.advance(60)
    await until_rest(fire_of(world), world.store)
    ours = [job for job in await jobs_of(world) if job.queue == "bulk"]
    assert sorted(job.tenant for job in ours if job.created_by == "schedule:nightly") == names
    assert sorted(job.tenant for job in ours if job.created_by == "schedule:all") == ["free", *names]
    (slot,) = await slots(world)
    assert (slot.state, slot.fan_out) == ("enqueued", FanOut(cursor="t002", enqueued=3))


async def test_many_tenants_are_served_page_by_page_each_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S57: also by three schedulers at once; the counts are those of the jobs."""
    monkeypatch.setattr(fan_out, "TENANTS", 7)
    names = await tenants(world, 50)
    await publish(world)
    to_minute(world)
    await declare(world, spec(for_tenants=PRO))
    world.advance(60)
    await asyncio.gather(*(until_rest(fire_of(world), world.store) for _ in range(3)))
    assert sorted(job.tenant for job in await jobs_of(world)) == names
    (slot,) = await slots(world)
    assert slot.fan_out is not None
    assert (slot.state, slot.fan_out.enqueued, slot.fan_out.failed) == ("enqueued", 50, 0)


async def test_jobs_are_spread_always_alike_and_never_before_the_slot(world: World) -> None:
    """S57: no herd; the same tenant comes at the same time of each run."""
    names = await tenants(world, 20)
    await publish(world)
    to_minute(world)
    await declare(world, spec(for_tenants=PRO, spread=HOUR))
    world.advance(60)
    now = world.now
    await until_rest(fire_of(world), world.store)
    jobs = {job.tenant: job for job in await jobs_of(world)}
    assert {name: job.run_at for name, job in jobs.items()} == {
        name: now + offset_of(name, "nightly", HOUR) for name in names
    }
    assert len({job.run_at for job in jobs.values()}) == 20
    assert {job.state for job in jobs.values()} == {State.DELAYED}


async def test_tenants_that_are_refused_are_named_and_stop_no_other(world: World) -> None:
    """S57: with the reason of each, up to a bound; one event at the end."""
    names = await tenants(world, 5)
    rules = QueueRules(limits=Limits(waiting=1, on_full="reject"))
    await world.declare(SubjectKind.QUEUE, "bulk", rules)
    for name in names[1:3]:
        await world.enqueue(name, queue="bulk")
    await publish(world)
    to_minute(world)
    await declare(world, spec(for_tenants=PRO))
    world.advance(60)
    await until_rest(fire_of(world), world.store)
    (slot,) = await slots(world)
    assert slot.fan_out is not None
    assert (slot.fan_out.enqueued, slot.fan_out.failed) == (3, 2)
    assert [name for name, _ in slot.fan_out.exceptions] == names[1:3]
    (told,) = [one for one in await world.appended("events") if one.kind == "schedule_failed"]
    assert (told.subject, told.tenant, told.count) == ("nightly", None, 2)


async def test_tenants_whose_last_job_is_not_done_are_skipped(world: World) -> None:
    """S14: each for itself."""
    names = await tenants(world, 3)
    await publish(world)
    to_minute(world)
    await declare(world, spec(for_tenants=PRO, overlap="skip"))
    world.advance(60)
    await until_rest(fire_of(world), world.store)
    jobs = await jobs_of(world)
    await world.condemn(next(job.id for job in jobs if job.tenant == names[0]))
    world.advance(60)
    await until_rest(fire_of(world), world.store)
    (slot, _) = await slots(world)
    assert slot.fan_out is not None
    assert (slot.fan_out.enqueued, slot.fan_out.skipped) == (1, 2)


async def test_a_pause_stops_a_fan_out_where_it_is(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """CP4.7: what it has made stays, and is counted."""
    monkeypatch.setattr(fan_out, "TENANTS", 4)
    await tenants(world, 10)
    await publish(world)
    to_minute(world)
    fire = fire_of(world)
    await declare(world, spec(for_tenants=PRO))
    world.advance(60)
    for _ in range(2):
        assert await fire(world.store) == 0
    hold = Hold(who="ann", reason="so", set_at=world.now)
    await change(world, "nightly", lambda record: replace(record, paused=hold, next_at=None))
    await until_rest(fire, world.store)
    (slot,) = await slots(world)
    assert slot.fan_out is not None
    assert (slot.state, slot.because) == ("skipped", "the schedule was paused")
    assert (slot.fan_out.enqueued, len(await jobs_of(world))) == (4, 4)


async def test_single_slots_do_not_wait_for_a_fan_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """S57: each slot stands alone."""
    monkeypatch.setattr(fan_out, "TENANTS", 1)
    await tenants(world, 5)
    await publish(world)
    to_minute(world)
    fire = fire_of(world)
    await declare(world, spec("many", for_tenants=PRO), spec("single"))
    world.advance(60)
    for _ in range(2):
        assert await fire(world.store) == 0
    assert [slot.state for slot in await slots(world, "single")] == ["enqueued"]
    assert [slot.state for slot in await slots(world, "many")] == ["pending"]


async def test_a_fan_out_over_nobody_ends(world: World) -> None:
    """S57: with no job."""
    await publish(world)
    to_minute(world)
    await declare(world, spec(for_tenants=PRO))
    world.advance(60)
    await until_rest(fire_of(world), world.store)
    (slot,) = await slots(world)
    assert (slot.state, slot.fan_out) == ("enqueued", FanOut())


async def test_a_schedule_that_is_for_one_tenant_now_ends_its_fan_out(world: World) -> None:
    """S57: somebody has changed it meanwhile."""
    await tenants(world, 2)
    await publish(world)
    to_minute(world)
    fire = fire_of(world)
    await declare(world, spec(for_tenants=PRO))
    world.advance(60)
    assert await fire(world.store) == 0
    await change(world, "nightly", lambda record: replace(record, declared=spec()))
    world.advance(1 / SECOND)
    await until_rest(fire, world.store)
    (slot,) = await slots(world)
    assert (slot.state, await jobs_of(world)) == ("skipped", [])
