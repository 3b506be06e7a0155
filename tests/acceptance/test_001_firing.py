"""Description B, scheduler: one job for each slot, catching up, pauses, many schedulers; on every store."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane import ConfigError, InvalidSchedule, Limits, Queue, ScheduleNotFound, State
from fairlane.duties.leader_election import LeaderElection
from fairlane.model.identifiers import slot_id
from fairlane.model.instants import SECOND, to_instant
from fairlane.model.retry.decision import Failed, Succeeded, interpret
from fairlane.store.contract.schedules import ScheduleChange, SchedulesFindRequest, SchedulesWriteRequest
from tests.acceptance.plan import Plan, times
from tests.acceptance.presets import work
from tests.acceptance.world import ALL, World

MIDNIGHT = "2027-03-01T00:00:00+00:00"


@pytest.fixture
def plan(world: World) -> Plan:
    """An application without schedules, at midnight."""
    return Plan(world, MIDNIGHT)


async def test_001_cp4_3_a_recurring_job_comes_at_each_interval(plan: Plan) -> None:
    """Every ten minutes of an hour, and never twice."""
    plan.app.schedule(every="10m", name="tick")(plan.app.task(name="work")(work))
    await plan.start()
    await plan.go(60)
    assert times(await plan.jobs()) == ["00:10", "00:20", "00:30", "00:40", "00:50", "01:00"]


async def test_001_mg_6_a_schedule_of_every_minute_enqueues_each_minute(plan: Plan) -> None:
    """By its expression."""
    plan.app.schedule("* * * * *", name="tick")(plan.app.task(name="work")(work))
    await plan.start()
    await plan.go(5, step=20)
    assert times(await plan.jobs()) == ["00:01", "00:02", "00:03", "00:04", "00:05"]


async def test_001_mg_11_every_second_minute_of_ten_makes_five_jobs(plan: Plan) -> None:
    """`*/2 * * * *`."""
    plan.app.schedule("*/2 * * * *", name="tick")(plan.app.task(name="work")(work))
    await plan.start()
    await plan.go(10)
    assert len(await plan.jobs()) == 5


async def test_001_cp4_5_a_slot_within_the_window_is_skipped(plan: Plan) -> None:
    """Nothing is enqueued for it, and that is recorded."""
    plan.app.schedule("* * * * *", name="tick", unique_for=120)(plan.app.task(name="work")(work))
    await plan.start()
    await plan.go(4)
    assert times(await plan.jobs()) == ["00:01", "00:03"]
    states = dict(await plan.slots("tick"))
    assert states == {"00:01": "enqueued", "00:02": "skipped", "00:03": "enqueued", "00:04": "skipped"}


async def test_001_mg_12_the_second_attempt_within_sixty_seconds_is_skipped(plan: Plan) -> None:
    """Twice a minute, unique for a minute."""
    plan.app.schedule(every=30, name="tick", unique_for=60)(plan.app.task(name="work")(work))
    await plan.start()
    await plan.go(1, step=30)
    assert [state for _, state in await plan.slots("tick")] == ["enqueued", "skipped"]
    assert len(await plan.jobs()) == 1


async def test_001_sc_15_a_window_of_300_seconds_and_the_states_of_a_slot(plan: Plan) -> None:
    """That of the description is an option here, since it would skip what runs every minute."""
    plan.app.schedule("*/3 * * * *", name="tick", unique_for="5m")(plan.app.task(name="work")(work))
    await plan.start()
    await plan.go(9)
    assert [state for _, state in await plan.slots("tick")] == ["enqueued", "skipped", "enqueued"]
    six = datetime.fromisoformat(MIDNIGHT) + timedelta(minutes=6)
    await plan.app.schedules.abackfill("tick", six, six, note="again")
    states = {one.state for one in await plan.history("tick")}
    assert states == {"enqueued", "pending"}


async def test_001_cp4_6_a_missed_slot_is_made_up_for_at_once(plan: Plan) -> None:
    """As soon as a scheduler is back."""
    plan.app.schedule("0 * * * *", name="tick")(plan.app.task(name="work")(work))
    await plan.start()
    await plan.go(60)
    plan.world.clock.advance(70 * 60)
    assert times(await plan.jobs()) == ["01:00"]
    await plan.passes()
    assert times(await plan.jobs()) == ["01:00", "02:00"]


async def test_001_ix_5_after_an_outage_the_missed_slot_comes_first_and_later_ones_in_time(
    plan: Plan,
) -> None:
    """Nothing is shifted."""
    plan.app.schedule("*/15 * * * *", name="tick")(plan.app.task(name="work")(work))
    await plan.start()
    plan.world.clock.advance(20 * 60)
    await plan.passes()
    await plan.go(25)
    jobs = await plan.jobs()
    assert times(jobs) == ["00:15", "00:30", "00:45"]
    assert [(job.enqueued_at - job.slot).total_seconds() for job in jobs if job.slot] == [300, 0, 0]


async def test_001_cp4_7_a_paused_schedule_enqueues_nothing_and_resumes_without_a_burst(plan: Plan) -> None:
    """What the pause has left out stays out."""
    plan.app.schedule("* * * * *", name="tick", catch_up=100)(plan.app.task(name="work")(work))
    await plan.start()
    await plan.go(1)
    await plan.app.schedules.apause("tick", reason="quiet")
    await plan.go(30)
    assert len(await plan.jobs()) == 1
    await plan.app.schedules.aresume("tick")
    await plan.go(2)
    assert times(await plan.jobs()) == ["00:01", "00:32", "00:33"]


async def test_001_sc_1_a_past_run_is_refused_and_a_single_one_leaves_after_firing(plan: Plan) -> None:
    """Its history stays."""
    task = plan.app.task(name="work")(work)
    await plan.start()
    with pytest.raises(InvalidSchedule, match="at: has passed"):
        await plan.app.schedules.aadd("once", task.name, at="2027-02-28T23:59")
    await plan.app.schedules.aadd("once", task.name, at="2027-03-01T00:05")
    await plan.go(10)
    assert times(await plan.jobs()) == ["00:05"]
    view = await plan.app.schedules.aget("once")
    assert (view.is_active, view.next_at) == (False, None)
    assert await plan.slots("once") == [("00:05", "enqueued")]


async def test_001_sc_2_an_invalid_expression_is_refused_with_its_field(plan: Plan) -> None:
    """When it is declared, and when it is added."""
    task = plan.app.task(name="work")(work)
    with pytest.raises(ConfigError, match="cron: minute '61' is not allowed"):
        plan.app.schedule("61 * * * *", name="tick")(task)
    await plan.start()
    with pytest.raises(InvalidSchedule, match="cron: "):
        await plan.app.schedules.aadd("tick", task.name, "* * * * * *")


async def test_001_sc_3_remove_pause_resume_update_get_list(plan: Plan) -> None:
    """Resume and update compute the next run from now; the list has filters."""
    work_, other = (plan.app.task(name=name)(work) for name in ("work", "other"))
    await plan.start()
    schedules = plan.app.schedules
    await schedules.aadd("a", work_.name, "0 * * * *")
    await schedules.aadd("b", other.name, "30 * * * *")
    await schedules.apause("a", reason="x")
    assert [one.name for one in await schedules.alist(active=True)] == ["b"]
    assert [one.name for one in await schedules.alist(task="work")] == ["a"]
    plan.world.clock.advance(5 * 3600 + 60)
    await schedules.aresume("a")
    assert f"{(await schedules.aget('a')).next_at:%H:%M}" == "06:00"
    assert f"{(await schedules.aedit('a', cron='15 * * * *')).next_at:%H:%M}" == "05:15"
    await schedules.aremove("a")
    with pytest.raises(ScheduleNotFound):
        await schedules.aget("a")


async def test_001_sc_4_a_job_carries_its_schedule_and_slot(plan: Plan) -> None:
    """Also when it is caught up."""
    plan.app.schedule("0 * * * *", name="tick", tenant="acme")(plan.app.task(name="work")(work))
    await plan.start()
    plan.world.clock.advance(3600 + 1800)
    await plan.passes()
    (job,) = await plan.jobs()
    assert (job.schedule, f"{job.slot:%H:%M}", job.tenant) == ("tick", "01:00", "acme")
    assert (await plan.app.jobs.aexplain(job.id)).schedule == "tick"


async def test_001_sc_5_a_failing_schedule_does_not_stop_the_others(world: World) -> None:
    """Its slot is failed, with the reason."""
    plan = Plan(world, MIDNIGHT, queues=[Queue("full", limits=Limits(waiting=0, on_full="reject"))])
    plan.app.schedule("* * * * *", name="refused", tenant="acme")(plan.app.task(name="a", queue="full")(work))
    plan.app.schedule("* * * * *", name="well")(plan.app.task(name="b")(work))
    await plan.start()
    await plan.go(2)
    assert [job.schedule for job in await plan.jobs()] == ["well", "well"]
    slots = await plan.history("refused")
    assert [slot.state for slot in slots] == ["failed", "failed"]
    assert "waiting" in slots[0].because


async def test_001_sc_13_five_schedulers_at_once_make_one_job_of_a_slot(plan: Plan) -> None:
    """Whoever is first."""
    plan.app.schedule("* * * * *", name="tick")(plan.app.task(name="work")(work))
    await plan.start()
    for _ in range(3):
        plan.world.clock.advance(60)
        await asyncio.gather(*(plan.passes(plan.scheduler()) for _ in range(5)))
    assert times(await plan.jobs()) == ["00:01", "00:02", "00:03"]


@pytest.mark.parametrize(("catch_up", "expected"), [("skip", 0), ("latest", 1), (10, 10)])
async def test_001_sc_14_what_was_missed_is_made_up_for_as_said(
    plan: Plan, catch_up: Any, expected: int
) -> None:
    """Thirty hours without a scheduler: none, the last one, or ten; the rest is recorded as missed."""
    plan.app.schedule("0 * * * *", name="tick", catch_up=catch_up)(plan.app.task(name="work")(work))
    await plan.start()
    plan.world.clock.advance(30 * 3600 + 1800)
    await plan.passes(plan.scheduler())
    latest = [f"{hour % 24:02}:00" for hour in range(1, 31)][30 - expected :]
    assert times(await plan.jobs()) == latest
    missed = sum(slot.missed + (slot.state == "missed") for slot in await plan.history("tick"))
    assert missed == 30 - expected


async def test_001_sc_17_other_rules_of_a_zone_move_the_next_run(plan: Plan) -> None:
    """After `recompute`, which says of how many."""
    plan.app.schedule("0 9 * * *", name="tick", timezone="Europe/Berlin")(plan.app.task(name="work")(work))
    await plan.start()
    found = await plan.world.store.schedules.find(SchedulesFindRequest(scope=ALL, names=("tick",)))
    (row,) = found.rows
    old = replace(row.record, next_at=(row.record.next_at or 0) + 3600 * SECOND)
    change = ScheduleChange(name="tick", revision=row.revision, record=old)
    await plan.world.store.schedules.write(SchedulesWriteRequest(scope=ALL, changes=(change,)))
    assert await plan.app.schedules.arecompute(note="new rules") == 1
    assert f"{(await plan.app.schedules.aget('tick')).next_at:%H:%M}" == "08:00"
    assert await plan.app.schedules.arecompute() == 0


async def test_001_sc_18_the_id_of_a_slots_job_is_derived_and_firing_twice_makes_one(plan: Plan) -> None:
    """From tenant, schedule and slot."""
    plan.app.schedule("* * * * *", name="tick", tenant="acme")(plan.app.task(name="work")(work))
    await plan.start()
    await plan.go(1)
    (job,) = await plan.jobs()
    assert job.slot is not None
    assert job.id == slot_id("acme", "tick", to_instant(job.slot))
    await plan.passes()
    await plan.passes(plan.scheduler())
    assert len(await plan.jobs()) == 1


async def test_001_sc_19_no_slot_is_fired_early(plan: Plan) -> None:
    """However often a scheduler looks, and however wrong its machine's clock is."""
    plan.app.schedule("0 * * * *", name="tick")(plan.app.task(name="work")(work))
    await plan.start()
    plan.world.clock.advance(3599)
    for wrong_by in (0, 3600, -3600):
        await plan.passes(plan.scheduler(wrong_by))
    assert await plan.jobs() == []
    plan.world.clock.advance(1)
    await plan.passes(plan.scheduler(3600))
    assert times(await plan.jobs()) == ["01:00"]


async def test_001_sc_20_a_hundred_due_schedules_are_one_batch_and_the_next_comes_after(plan: Plan) -> None:
    """One pass takes a hundred."""
    task = plan.app.task(name="work")(work)
    for number in range(101):
        plan.app.schedule("0 1 * * *", name=f"s{number:03}")(task)
    await plan.start()
    plan.world.clock.advance(3600)
    await plan.fire(plan.world.store)
    taken = [name for name in (f"s{number:03}" for number in range(101)) if await _is_taken(plan, name)]
    assert len(taken) == 100
    await plan.passes()
    assert len(await plan.jobs()) == 101


async def _is_taken(plan: Plan, name: str) -> bool:
    return (await plan.app.schedules.aget(name)).last_slot is not None


async def test_001_ec_13_a_scheduler_that_stands_still_is_taken_over(plan: Plan) -> None:
    """It does not renew its lead; whoever takes it fires what is due, and the first one finds that out."""
    plan.app.schedule("* * * * *", name="tick")(plan.app.task(name="work")(work))
    await plan.start()
    stalled, other = (LeaderElection(name, 12 * SECOND, 4 * SECOND) for name in ("s1", "s2"))
    for one in (stalled, other):
        await one(plan.world.store)
    assert (stalled.is_leader, other.is_leader) == (True, False)
    plan.world.clock.advance(60)
    await other(plan.world.store)
    assert other.is_leader
    await plan.passes(plan.scheduler())
    assert times(await plan.jobs()) == ["00:01"]
    await stalled(plan.world.store)
    assert not stalled.is_leader
    await plan.passes()
    assert len(await plan.jobs()) == 1


async def test_001_ix_7_five_minutes_with_a_handler_that_fails_twice(plan: Plan) -> None:
    """Five jobs succeed, two attempts have failed, and two retries were needed."""
    plan.app.schedule("* * * * *", name="tick")(plan.app.task(name="work", max_attempts=3)(work))
    await plan.start()
    failures = 2
    for _ in range(5):
        await plan.go(1)
        await _run_all(plan, failures)
        failures = 0
    jobs = await plan.jobs()
    assert [job.state for job in jobs] == [State.SUCCEEDED] * 5
    assert sum(job.failures for job in jobs) == 2
    assert sum(job.attempt - 1 for job in jobs) == 2


async def _run_all(plan: Plan, failures: int) -> None:
    for _ in range(failures):
        await plan.world.settle(await plan.world.take(), Failed(_boom()))
        plan.world.clock.advance(5)
        await plan.world.promote()
    await plan.world.settle(await plan.world.take(), Succeeded())


def _boom() -> Any:
    return interpret(RuntimeError("boom"), None, []).failure  # type: ignore[union-attr]


async def test_001_fm_8_a_machine_an_hour_ahead_fires_in_time_and_catches_up_after(plan: Plan) -> None:
    """Its clock is not asked; that its skew is reported is a check of `doctor`."""
    plan.app.schedule("0 * * * *", name="tick")(plan.app.task(name="work")(work))
    await plan.start()
    ahead = plan.scheduler(3600)
    plan.world.clock.advance(1800)
    await plan.passes(ahead)
    assert await plan.jobs() == []
    plan.world.clock.advance(1800)
    await plan.passes(ahead)
    plan.world.clock.advance(3700)
    await plan.passes(plan.scheduler(-3600))
    assert times(await plan.jobs()) == ["01:00", "02:00"]


async def test_003_fu_6_recurring_schedules(plan: Plan) -> None:
    """By expression and by interval, beside each other."""
    task = plan.app.task(name="work")(work)
    plan.app.schedule("*/30 * * * *", name="half")(task)
    plan.app.schedule(every="20m", name="third")(task)
    await plan.start()
    await plan.go(60)
    assert sorted(job.schedule or "" for job in await plan.jobs()) == ["half"] * 2 + ["third"] * 3
