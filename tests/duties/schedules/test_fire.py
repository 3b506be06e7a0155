"""Slots that are due become jobs: each once, none early, none lost (S57, S61)."""

from __future__ import annotations

import asyncio
from logging import WARNING
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from fairlane.duties.schedules.fire import EVERY
from fairlane.duties.schedules.take import UNSEEN_FOR, UP_FOR
from fairlane.model.identifiers import slot_id
from fairlane.model.instants import DAY, HOUR, SECOND
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import QueueRules, SubjectKind
from fairlane.model.schedule.origin import creator_of
from fairlane.model.schedule.records import ScheduleOverride
from fairlane.model.schedule.restart import restarted
from fairlane.model.schedule.timing import At, Cron
from fairlane.store.contract.schedules import ScheduleChange
from tests.contract.schedules.scene import due, keep, names, new, put, slots, write
from tests.contract.world import MICRO, SUCCEEDED, World
from tests.duties.schedules.scene import (
    MINUTE,
    change,
    declare,
    fire_of,
    jobs_of,
    paused,
    publish,
    row_of,
    spec,
    states,
    to_minute,
    until_rest,
)


async def test_a_slot_becomes_a_job_at_its_time_and_not_before(world: World) -> None:
    """S57: with the id of the slot, and marked as the schedule's; the schedule has moved on."""
    fire = fire_of(world)
    await publish(world)
    to_minute(world)
    await declare(world, spec())
    at = world.now + MINUTE
    assert await until_rest(fire, world.store) == EVERY
    world.advance(60 - MICRO)
    assert await until_rest(fire, world.store) == 1
    assert await jobs_of(world) == []
    world.advance(MICRO)
    assert await until_rest(fire, world.store) == EVERY
    (job,) = await jobs_of(world)
    assert (job.id, job.state, job.tenant) == (slot_id("acme", "nightly", at), State.READY, "acme")
    assert (job.created_by, job.correlation_id) == (creator_of("nightly"), str(job.id))
    assert await states(world) == [(at, "enqueued")]
    record = (await row_of(world)).record
    assert (record.last_slot, record.settled_to, record.next_at) == (at, at, at + MINUTE)


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
async def test_the_clock_of_the_machine_does_not_matter(world: World, ahead: int) -> None:
    """S57, X24: an hour fast or slow, the store says what is due."""
    fire = fire_of(world, ahead)
    await publish(world)
    to_minute(world)
    await declare(world, spec())
    await until_rest(fire, world.store)
    assert await jobs_of(world) == []
    world.advance(60)
    await until_rest(fire, world.store)
    assert len(await jobs_of(world)) == 1


async def test_an_idle_leader_asks_once_in_five_seconds(world: World) -> None:
    """It reads the schedules once, for the zone data, and then asks one question a pass."""
    fire = fire_of(world)
    await declare(world, spec(timing=At(instant=world.now + DAY)))
    assert await fire(world.store) == EVERY
    assert await fire(world.store) == EVERY


async def test_five_schedulers_at_once_make_one_job_of_a_slot(world: World) -> None:
    """S57: the unique slot decides, not who leads."""
    await publish(world)
    to_minute(world)
    await declare(world, *(spec(f"s{number:03}") for number in range(105)))
    world.advance(60)
    await asyncio.gather(*(until_rest(fire_of(world), world.store) for _ in range(5)))
    jobs = await jobs_of(world)
    assert len(jobs) == len({job.id for job in jobs}) == 105
    assert {len(await slots(world, f"s{number:03}")) for number in range(105)} == {1}


async def test_a_hundred_schedules_are_taken_in_one_pass(world: World) -> None:
    """SC-20: and the next one in the next."""
    fire = fire_of(world)
    await publish(world)
    to_minute(world)
    await declare(world, *(spec(f"s{number:03}") for number in range(101)))
    world.advance(60)
    assert await fire(world.store) == 0
    assert (await due(world)).rows[0].record.name == "s100"
    assert len((await due(world)).rows) == 1


async def test_what_was_missed_is_caught_up_as_the_schedule_says_and_told(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """S57, W20: the latest, none, or so many; the rest is recorded as missed, with its number."""
    fire = fire_of(world)
    await publish(world)
    to_minute(world)
    at = world.now
    timing = {"latest": "latest", "skip": "skip", "three": 3}
    await declare(world, *(spec(name, catch_up=catch_up) for name, catch_up in timing.items()))
    world.advance(10 * 60 + 30)
    await until_rest(fire, world.store)
    assert await states(world, "three") == [(at + one * MINUTE, "enqueued") for one in (8, 9, 10)]
    assert await states(world, "latest") == [(at + 10 * MINUTE, "enqueued")]
    assert await states(world, "skip") == [(at + 10 * MINUTE, "enqueued")]  # that one is in time
    world.advance(3 * 60 + 45)
    await change(
        world,
        "skip",
        lambda record: replace(
            record, declared=spec("skip", catch_up="skip", timing=Cron(expression="0 0 1 1 *"))
        ),
    )
    (first,) = await slots(world, "three", limit=1, before=at + 9 * MINUTE)
    assert (first.missed, first.missed_since) == (7, at + MINUTE)
    told = [one for one in await world.appended("events") if one.kind == "schedule_missed"]
    assert {one.subject: one.count for one in told} == {"three": 7, "latest": 9, "skip": 9}
    logged = [one.__dict__.get("event") for one in caplog.records if one.levelno == WARNING]
    assert logged.count("schedule_missed") == 3


async def test_slots_that_nobody_takes_late_are_recorded_as_missed(world: World) -> None:
    """S57: the last one, and how many before it."""
    fire = fire_of(world)
    await publish(world)
    to_minute(world)
    at = world.now
    hourly = spec(
        timing=Cron(expression="* * * * *", between=("00:00", "23:59")), catch_up="skip", ends=at + 5 * MINUTE
    )
    await declare(world, hourly)
    world.advance(10 * 60)
    await until_rest(fire, world.store)
    assert await jobs_of(world) == []
    (slot,) = await slots(world)
    assert (slot.at, slot.state, slot.missed, slot.missed_since) == (
        at + 5 * MINUTE,
        "missed",
        4,
        at + MINUTE,
    )


async def test_a_schedule_of_one_time_is_over_when_it_was_taken(world: World) -> None:
    """SC-1: its history stays."""
    fire = fire_of(world)
    await publish(world)
    at = world.now + 5 * SECOND
    await declare(world, spec(timing=At(instant=at)))
    world.advance(5)
    await until_rest(fire, world.store)
    assert len(await jobs_of(world)) == 1
    record = (await row_of(world)).record
    assert (record.retired_at, record.next_at) == (at, None)
    assert await states(world) == [(at, "enqueued")]


async def test_a_paused_schedule_makes_nothing_and_goes_on_without_a_burst(world: World) -> None:
    """CP4.7: until it is resumed, or the pause ends by itself; the slot at its end is taken."""
    fire = fire_of(world)
    await publish(world)
    to_minute(world)
    at = world.now
    await declare(world, spec())
    await change(world, "nightly", paused)
    world.advance(10 * 60)
    await until_rest(fire, world.store)
    assert await states(world) == []
    await change(world, "nightly", lambda record: restarted(replace(record, paused=None), world.now))
    await until_rest(fire, world.store)
    assert await states(world) == []
    await change(world, "nightly", lambda record: paused(record, at + 20 * MINUTE))
    world.advance(10 * 60 + 30)
    await until_rest(fire, world.store)
    assert await states(world) == [(at + 20 * MINUTE, "enqueued")]
    assert (await row_of(world)).record.paused is None


async def test_an_override_that_ends_gives_way_to_what_is_declared(world: World) -> None:
    """S54: at its end, without anybody's doing."""
    fire = fire_of(world)
    await publish(world)
    to_minute(world)
    at = world.now
    await declare(world, spec(timing=Cron(expression="0 0 1 1 *")))
    override = ScheduleOverride(spec=spec(), who="ann", set_at=at, until=at + 2 * MINUTE)
    await change(world, "nightly", lambda record: restarted(replace(record, override=override), world.now))
    world.advance(60)
    await until_rest(fire, world.store)
    assert await states(world) == [(at + MINUTE, "enqueued")]
    world.advance(60)
    await until_rest(fire, world.store)
    record = (await row_of(world)).record
    assert (record.override, await states(world)) == (None, [(at + MINUTE, "enqueued")])
    assert record.next_at is not None
    assert record.next_at > at + 2 * MINUTE


async def test_a_refused_job_fails_its_slot_with_the_reason_and_stops_no_other(world: World) -> None:
    """S57: a tenant at its limit, a closed queue: each slot stands alone."""
    fire = fire_of(world)
    await publish(world)
    to_minute(world)
    rules = QueueRules(limits=Limits(waiting=1, on_full="reject"))
    await world.declare(SubjectKind.QUEUE, "bulk", rules)
    await world.enqueue("full", queue="bulk")
    await declare(world, spec("a"), spec("b", tenant="full"), spec("c", tenant="globex"))
    world.advance(60)
    await until_rest(fire, world.store)
    found = {name: (await slots(world, name))[0] for name in ("a", "b", "c")}
    assert [found[name].state for name in ("a", "b", "c")] == ["enqueued", "failed", "enqueued"]
    assert "waiting" in found["b"].because
    (told,) = [one for one in await world.appended("events") if one.kind == "schedule_failed"]
    assert (told.subject, told.tenant) == ("b", "full")
    assert msgspec.json.decode(told.body)["because"] == found["b"].because


@pytest.mark.parametrize(("overlap", "made"), [("allow", 3), ("skip", 1), ("queue_one", 2)])
async def test_an_earlier_job_that_is_not_done_counts_as_the_schedule_says(
    world: World, overlap: Any, made: int
) -> None:
    """S14: by de-duplication; the slots without a job are recorded as skipped."""
    fire = fire_of(world)
    await publish(world)
    to_minute(world)
    await declare(world, spec(overlap=overlap))
    world.advance(60)
    await until_rest(fire, world.store)
    await world.claim_one("bulk")
    for _ in range(2):
        world.advance(60)
        await until_rest(fire, world.store)
    found = [state for _, state in await states(world)]
    assert (found.count("enqueued"), found.count("skipped")) == (made, 3 - made)
    assert len(await jobs_of(world)) == made


async def test_a_slot_too_close_to_the_one_before_is_skipped_and_makes_nothing(world: World) -> None:
    """CP4.5: within the window of uniqueness."""
    fire = fire_of(world)
    await publish(world)
    to_minute(world)
    await declare(world, spec(unique_for=300 * SECOND))
    for _ in range(6):
        world.advance(60)
        await until_rest(fire, world.store)
    assert [state for _, state in await states(world)] == ["enqueued", *["skipped"] * 4, "enqueued"]
    assert (await slots(world))[1].because == "less than 300 s after the slot before"
    assert len(await jobs_of(world)) == 2


async def test_a_schedule_is_paused_after_dead_jobs_in_a_row(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """S57: a success between them counts anew; the pause is told, and nothing more is made."""
    fire = fire_of(world)
    await publish(world)
    to_minute(world)
    await declare(world, spec(pause_after=2))
    for end in ("dead", "succeeded", "dead", "dead", "none", "none"):
        world.advance(60)
        await until_rest(fire, world.store)
        ready = [job for job in await jobs_of(world) if job.state is State.READY]
        for job in ready:
            if end == "dead":
                await world.condemn(job.id)
            elif end == "succeeded":
                await world.settle(await world.claim_one("bulk"), SUCCEEDED)
    record = (await row_of(world)).record
    assert len(await jobs_of(world)) == 4
    assert record.paused is not None
    assert (record.paused.who, record.paused.reason) == ("fairlane", "2 jobs in a row are dead")
    assert record.next_at is None
    assert "schedule_paused" in [one.kind for one in await world.appended("events")]
    assert "schedule_paused" in [one.__dict__.get("event") for one in caplog.records]


async def test_a_schedule_whose_task_has_gone_fails_and_the_others_go_on(world: World) -> None:
    """S57: it is marked so, and goes on when a worker has the task again."""
    fire = fire_of(world)
    await publish(world, "report")
    to_minute(world)
    await declare(world, spec("good"), spec("lost", task="removed"))
    world.advance(60)
    await until_rest(fire, world.store)
    assert [state for _, state in await states(world, "good")] == ["enqueued"]
    (slot,) = await slots(world, "lost")
    assert (slot.state, slot.because) == ("failed", "no worker has ever had task removed")
    assert (await row_of(world, "lost")).record.problem == slot.because
    assert "schedule_failed" in [one.kind for one in await world.appended("events")]
    await publish(world, "report", "removed")
    world.advance(60)
    await until_rest(fire, world.store)
    assert [state for _, state in await states(world, "lost")] == ["failed", "enqueued"]
    assert (await row_of(world, "lost")).record.problem == ""


async def test_a_task_that_no_worker_has_had_for_a_day_has_gone(world: World) -> None:
    """Not while the workers only rest, nor for a process that has just begun."""
    await publish(world)
    to_minute(world)
    await declare(world, spec())
    long_up = fire_of(world)
    world.advance(UNSEEN_FOR / SECOND)
    await until_rest(fire_of(world), world.store)
    world.advance(60)
    await until_rest(fire_of(world), world.store)
    assert [state for _, state in await states(world)] == ["enqueued", "enqueued"]
    world.advance(max(60, UP_FOR / SECOND - DAY / SECOND))
    await until_rest(long_up, world.store)
    (slot, *_) = await slots(world)
    assert (slot.state, slot.because) == ("failed", "no worker has had task report for a day")


async def test_a_zone_that_this_machine_does_not_know_fails_alone(world: World) -> None:
    """The others go on; another machine may know it."""
    fire = fire_of(world)
    await publish(world)
    to_minute(world)
    lost = spec("lost", timing=Cron(expression="* * * * *", timezone="Mars/Olympus"))
    await declare(world, spec("good"))
    record = replace((await row_of(world, "good")).record, name="lost", declared=lost)
    assert await write(world, put(record)) == (True,)
    world.advance(60)
    await until_rest(fire, world.store)
    assert [state for _, state in await states(world, "good")] == ["enqueued"]
    assert "Mars/Olympus" in (await row_of(world, "lost")).record.problem


async def test_pending_slots_of_a_schedule_that_was_removed_end(world: World) -> None:
    """S57: nothing says any more what they are to do."""
    await declare(world, spec())
    row = await keep(world, (await row_of(world)).record, new(world.now))
    assert await write(world, ScheduleChange(name="nightly", revision=row.revision)) == (True,)
    await until_rest(fire_of(world), world.store)
    (slot,) = await slots(world)
    assert (slot.state, slot.because) == ("skipped", "the schedule was removed")
    assert (await jobs_of(world), await names(world)) == ([], [])


async def test_what_an_operator_asked_for_is_made_also_while_paused(world: World) -> None:
    """S57: a run by hand heeds neither pause nor overlap."""
    fire = fire_of(world)
    await publish(world)
    to_minute(world)
    await declare(world, spec(overlap="skip"))
    world.advance(60)
    await until_rest(fire, world.store)
    await keep(world, paused((await row_of(world)).record), new(world.now + 0, cause="run_now"))
    world.advance(1)
    await keep(world, (await row_of(world)).record, new(world.now, cause="run_now"))
    await until_rest(fire, world.store)
    assert [state for _, state in await states(world)] == ["enqueued", "enqueued"]
    assert len(await jobs_of(world)) == 2


async def test_a_changed_version_of_the_zone_data_moves_the_next_run_and_says_so(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """M39: older data, as of another machine, move nothing."""
    await publish(world)
    to_minute(world)
    await declare(world, spec(timing=Cron(expression="0 9 * * *")))
    right = (await row_of(world)).record.next_at
    assert right is not None
    await change(world, "nightly", lambda record: replace(record, zones="1999a", next_at=right + HOUR))
    await fire_of(world)(world.store)
    record = (await row_of(world)).record
    assert record.next_at == right
    assert record.zones > "1999a"
    assert "schedule_moved" in [one.__dict__.get("event") for one in caplog.records]
    await change(world, "nightly", lambda record: replace(record, zones="9999a", next_at=right + HOUR))
    await fire_of(world)(world.store)
    assert (await row_of(world)).record.next_at == right + HOUR
