"""Slots of schedules: taken once, ended once, kept for a while (S57)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from fairlane.model.instants import SECOND, iso
from fairlane.model.policy.overrides import Hold
from fairlane.model.schedule.records import FanOut, SlotState
from fairlane.store.contract.request import Request
from fairlane.store.contract.schedules import (
    MAX_SLOTS,
    SLOTS_KEPT,
    ScheduleChange,
    SchedulesWriteRequest,
    SlotEnd,
)
from tests.contract.schedules.scene import due, end, find, keep, new, put, record, slots, spec, write
from tests.contract.world import ALL, MICRO, World


def ended(at: int, state: SlotState = "enqueued", **values: Any) -> SlotEnd:
    """Return the end of a slot."""
    return SlotEnd(schedule="nightly", at=at, state=state, **values)


async def events(world: World) -> list[tuple[str, str | None, str, int, Any]]:
    """Return what was told."""
    entries = [one.entry for one in (await world.pending("events")).entries]
    return [(one.kind, one.tenant, one.subject, one.count, msgspec.json.decode(one.body)) for one in entries]


async def test_a_slot_is_taken_with_its_schedule_and_pending_until_it_ends(world: World) -> None:
    """S57: both in one step; what is kept of it is what was given."""
    now, job = world.now, world.new().id
    await keep(world, record(last_slot=now), new(now, job=job, missed=3, missed_since=now - 9))
    (slot,) = await slots(world)
    assert (slot.state, slot.at, slot.taken_at, slot.ended_at) == ("pending", now, now, None)
    assert (slot.schedule, slot.tenant, slot.cause, slot.job) == ("nightly", "acme", "due", job)
    assert (slot.missed, slot.missed_since, slot.fan_out) == (3, now - 9, None)
    assert (await due(world)).pending == (slot,)
    world.clock.advance(1)
    assert await end(world, ended(now)) == (True,)
    (slot,) = await slots(world)
    assert (slot.state, slot.ended_at, slot.taken_at) == ("enqueued", now + SECOND, now)
    assert (await due(world)).pending == ()


async def test_a_slot_is_never_taken_twice(world: World) -> None:
    """S57: whoever comes later, with whatever revision: the unique slot decides."""
    now = world.now
    await keep(world, record(), new(now, job=world.new().id))
    (before,) = await slots(world)
    await keep(world, record(), new(now, job=world.new().id), new(now - 1))
    assert await slots(world) == [before, (await slots(world))[1]]
    assert await end(world, ended(now)) == (True,)
    for cause in ("due", "run_now", "backfill"):
        await keep(world, record(), new(now, cause=cause, job=world.new().id))
    assert ("enqueued", before.job) in [(slot.state, slot.job) for slot in await slots(world)]


async def test_who_takes_slots_is_told_which(world: World) -> None:
    """S57: those that were there are not among them, nor those of a change that was not made."""
    now = world.now
    row = await keep(world, record(), new(now))
    changes = (
        put(record("b"), new(now, "acme"), new(now - 1, None)),
        put(record("c"), new(now), revision=7),
        put(record(), new(now), new(now - 2, state="failed", because="so"), revision=row.revision),
        put(record("a")),
    )
    reply = await world.store.schedules.write(SchedulesWriteRequest(scope=ALL, changes=changes))
    assert reply.is_made == (True, False, True, True)
    kept = [*(await slots(world, "b")), (await slots(world))[1]]
    assert sorted(reply.taken, key=lambda slot: (slot.schedule, -slot.at)) == kept
    assert [slot.schedule for slot in reply.taken] == ["b", "b", "nightly"]


async def test_a_slot_of_the_future_is_not_taken_and_nothing_changes(world: World) -> None:
    """S57: nobody is early, by the store's clock; the next change stands alone."""
    now = world.now
    changes = (put(record(), new(now - 1), new(now + 1)), put(record("other"), new(now)))
    assert await write(world, *changes) == (False, True)
    assert (await find(world, "nightly"), await slots(world)) == ([], [])
    world.clock.advance(MICRO)
    assert await write(world, changes[0]) == (True,)


@pytest.mark.parametrize("state", ["missed", "skipped", "failed"])
async def test_a_backfill_takes_again_what_made_no_job(world: World, state: SlotState) -> None:
    """S57: a due slot does not; what was missed before it stays known."""
    now = world.now
    await keep(world, record(), new(now, state=state, because="so", missed=2, missed_since=now - 5))
    await keep(world, record(), new(now))
    (slot,) = await slots(world)
    assert (slot.state, slot.because, slot.ended_at) == (state, "so", now)
    assert (await due(world)).pending == ()
    await keep(world, record(), new(now, cause="backfill"))
    (slot,) = await slots(world)
    assert (slot.state, slot.cause, slot.because, slot.ended_at) == ("pending", "backfill", "", None)
    assert (slot.missed, slot.missed_since) == (2, now - 5)
    assert (await due(world)).pending == (slot,)


async def test_a_slot_ends_once(world: World) -> None:
    """S57: also if two end it at the same time; one that nobody took never."""
    now = world.now
    await keep(world, record(), new(now))
    both = await asyncio.gather(end(world, ended(now)), end(world, ended(now, "skipped", because="so")))
    assert sorted(both) == [(False,), (True,)]
    before = await slots(world)
    assert await end(world, ended(now, "failed"), ended(now - 1)) == (False, False)
    assert await slots(world) == before
    assert await end(world) == ()


async def test_each_end_stands_alone(world: World) -> None:
    """S57: in the order of the request."""
    now = world.now
    await keep(world, record(), new(now), new(now - 1), new(now - 2))
    assert await end(world, ended(now - 1)) == (True,)
    assert await end(world, ended(now), ended(now - 1), ended(now - 2)) == (True, False, True)
    assert [slot.state for slot in await slots(world)] == ["enqueued"] * 3


async def test_a_fan_out_goes_on_from_its_cursor_and_nobody_goes_back(world: World) -> None:
    """S57: who saw an older cursor changes nothing."""
    now = world.now
    await keep(world, record(), new(now, None))
    ((slot),) = await slots(world)
    assert slot.fan_out == FanOut()
    half = FanOut(cursor="m", enqueued=5, skipped=1, failed=1, exceptions=(("b", "closed"),))
    assert await end(world, ended(now, "pending", fan_out=half)) == (True,)
    assert await end(world, ended(now, "pending", fan_out=FanOut(cursor="c"))) == (False,)
    assert await end(world, ended(now, "enqueued")) == (False,)
    (slot,) = (await due(world)).pending
    assert (slot.fan_out, slot.ended_at) == (half, None)
    assert await end(world, ended(now, "enqueued", cursor="m")) == (True,)
    (slot,) = await slots(world)
    assert (slot.fan_out, slot.state) == (half, "enqueued")


async def test_pending_slots_come_by_time_within_the_limit(world: World) -> None:
    """S57: then by name; those for many tenants last."""
    now = world.now
    await keep(world, record("many", declared=spec("many", for_tenants={})), new(now - 9, None))
    for name, at in (("b", now), ("a", now), ("c", now - 5), ("d", now - 1)):
        await keep(world, record(name), new(at))
    assert [slot.schedule for slot in (await due(world)).pending][4:] == ["many"]
    assert [slot.schedule for slot in (await due(world)).pending][:4] == ["c", "d", "a", "b"]
    assert [slot.schedule for slot in (await due(world, limit=3)).pending] == ["c", "d", "a"]


async def test_slots_are_listed_newest_first_in_pages(world: World) -> None:
    """S51: of one schedule; another's are not among them, also if its name begins alike."""
    now = world.now
    await keep(world, record(), *(new(now - one) for one in range(5)))
    await keep(world, record("nightly-2"), new(now))
    assert [slot.at for slot in await slots(world)] == [now - one for one in range(5)]
    assert [slot.at for slot in await slots(world, limit=2)] == [now, now - 1]
    assert [slot.at for slot in await slots(world, limit=2, before=now - 1)] == [now - 2, now - 3]
    assert [slot.at for slot in await slots(world, before=now - 4)] == []
    with pytest.raises(ValueError, match="a page holds at most 1000"):
        await slots(world, limit=1001)


async def test_slots_of_a_removed_schedule_stay_and_keep_their_instants(world: World) -> None:
    """S57: one that is made again under its name takes none of them twice."""
    now = world.now
    row = await keep(world, record(), new(now))
    assert await write(world, ScheduleChange(name="nightly", revision=row.revision)) == (True,)
    before = await slots(world)
    assert (len(before), (await due(world)).pending) == (1, tuple(before))
    await keep(world, record(), new(now, job=world.new().id))
    assert await slots(world) == before


async def test_slots_are_kept_for_a_while_after_their_end(world: World) -> None:
    """S52: pending ones for as long as they are."""
    now = world.now
    await keep(world, record(), new(now, state="missed"), new(now - 1), new(now - 2))
    world.clock.advance(1)
    assert await end(world, ended(now - 1)) == (True,)
    world.clock.advance(SLOTS_KEPT / SECOND - 1 - MICRO)
    assert await world.store.schedules.clean(Request(scope=ALL)) == 0
    world.clock.advance(MICRO)
    assert await world.store.schedules.clean(Request(scope=ALL)) == 1
    assert [slot.at for slot in await slots(world)] == [now - 1, now - 2]
    world.clock.advance(1)
    assert await world.store.schedules.clean(Request(scope=ALL)) == 1
    (slot,) = await slots(world)
    assert slot.state == "pending"
    assert await world.store.schedules.clean(Request(scope=ALL)) == 0


async def test_too_many_ends_and_one_slot_twice_are_refused(world: World) -> None:
    """S57: in a sentence."""
    with pytest.raises(ValueError, match="at most 1000 slots"):
        await end(world, *(ended(one) for one in range(MAX_SLOTS + 1)))
    with pytest.raises(ValueError, match="ends a slot once"):
        await end(world, ended(1), ended(1))


async def test_events_tell_of_slots_that_were_missed_and_that_failed(world: World) -> None:
    """S76: in the step that makes them; a slot that stays as it is makes none."""
    now = world.now
    taken = (new(now, missed=3, missed_since=now - 9), new(now - 1, state="failed", because="closed"))
    await keep(world, record(), *taken)
    await keep(world, record(), *taken)
    assert await end(world, ended(now, "failed", because="full")) == (True,)
    assert await end(world, ended(now, "failed", because="full")) == (False,)
    at = [iso(one) for one in (now - 1, now, now - 9)]
    about: dict[str, Any] = {"schedule": "nightly"}
    assert await events(world) == [
        ("schedule_failed", "acme", "nightly", 1, {**about, "because": "closed", "slot": at[0]}),
        ("schedule_missed", "acme", "nightly", 3, {**about, "missed": 3, "since": at[2], "to": at[1]}),
        ("schedule_failed", "acme", "nightly", 1, {**about, "because": "full", "slot": at[1]}),
    ]


async def test_events_tell_of_a_schedule_that_begins_to_fail_or_is_paused(world: World) -> None:
    """S76: once; a pause by an operator is no event, and nothing is told of what was not done."""
    failing = record(problem="its task has gone")
    row = await keep(world, failing)
    assert await write(world, put(record(problem="again"))) == (False,)
    await keep(world, failing)
    by_operator = Hold(who="ann", reason="so", set_at=world.now)
    await keep(world, record(problem=failing.problem, paused=by_operator))
    by_itself = Hold(who="fairlane", reason="5 jobs in a row are dead", set_at=world.now)
    await keep(world, record(paused=by_itself))
    await keep(world, record(paused=by_itself))
    (row,) = await find(world, "nightly")
    assert await write(world, ScheduleChange(name="nightly", revision=row.revision)) == (True,)
    assert [(kind, about["because"]) for kind, *_, about in await events(world)] == [
        ("schedule_failed", "its task has gone"),
        ("schedule_paused", "5 jobs in a row are dead"),
    ]


async def test_the_end_of_a_fan_out_tells_how_many_tenants_have_no_job(world: World) -> None:
    """S76: once, at its end; it is no single tenant's."""
    now = world.now
    await keep(world, record(declared=spec(for_tenants={})), new(now, None))
    some = FanOut(cursor="m", failed=2, exceptions=(("b", "closed"),))
    assert await end(world, ended(now, "pending", fan_out=some)) == (True,)
    assert await events(world) == []
    assert await end(world, ended(now, "enqueued", cursor="m")) == (True,)
    ((kind, tenant, subject, count, about),) = await events(world)
    assert (kind, tenant, subject, count, about["because"]) == (
        "schedule_failed",
        None,
        "nightly",
        2,
        "closed",
    )
