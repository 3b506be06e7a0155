"""Description D, its jobs: defaults, priorities, times, de-duplication, correlation, retries."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from fairlane import ErrorClass, Gate, JobFailed, Queue, Rate, State
from fairlane.model.instants import DAY, MINUTE, SECOND, Instant, to_datetime
from fairlane.model.retry.decision import Succeeded
from fairlane.store.contract.dead import DeadGetRequest
from tests.acceptance.presets import D_RETRY, Preset, lanes, work
from tests.acceptance.world import ALL, World

BOOM = RuntimeError("boom")


@pytest.fixture
async def preset(world: World) -> Preset:
    """Return the preset of description D, in force."""
    return await world.open(lanes(world.url))


def ids(jobs: Any) -> list[UUID]:
    """Return the ids of jobs."""
    return [job.id for job in jobs]


@pytest.mark.parametrize(
    ("task", "minutes"), [("email", 2), ("slow", 20), ("analysis", 10), ("elevation", 5)]
)
async def test_003_ln_6_timeouts_come_from_the_lane_or_the_task(
    world: World, preset: Preset, task: str, minutes: int
) -> None:
    """Fast two minutes, slow twenty, unless a task has its own."""
    job = await preset[task].aenqueue()
    assert (await world.record(job)).timeout == minutes * MINUTE


async def test_003_jb_1_a_job_has_its_defaults(preset: Preset) -> None:
    """Priority 100, no attempt of three, a correlation id of its own."""
    job = await preset["email"].aenqueue()
    assert (job.priority, job.attempt, job.max_attempts) == (100, 0, 3)
    assert job.correlation_id == str(job.id)


async def test_003_jb_2_the_smaller_priority_goes_first(world: World, preset: Preset) -> None:
    """Shown as this application counts."""
    usual = await preset["email"].aenqueue()
    sooner = await preset["email"].using(priority=99).aenqueue()
    first = await preset["email"].using(priority=0).aenqueue()
    assert [job.priority for job in (usual, sooner, first)] == [100, 99, 0]
    assert [claim.job.id for claim in await world.claim(3, "fast")] == ids([first, sooner, usual])


async def test_003_jb_3_a_job_runs_five_minutes_ahead(world: World, preset: Preset) -> None:
    """Not before."""
    job = await preset["email"].using(run_at=to_datetime(world.now) + timedelta(minutes=5)).aenqueue()
    world.advance(299.999999)
    assert await world.claim(1, "fast") == []
    world.advance(0.000001)
    assert (await world.take("fast")).job.id == job.id


@pytest.mark.parametrize("state", [State.DELAYED, State.READY, State.RUNNING])
async def test_003_jb_4_a_second_unfinished_enqueue_gives_the_first_job(
    world: World, preset: Preset, state: State
) -> None:
    """Whatever it waits for; the repeat changes nothing in it."""
    task = preset["email"].using(tenant="acme", dedup_key="user-7")
    first = await task.using(delay=60 if state is State.DELAYED else None).aenqueue(1)
    if state is State.RUNNING:
        await world.take("fast")
    again = await task.using(priority=1).aenqueue(2)
    assert (again.id, again.created, again.priority) == (first.id, False, 100)


async def test_003_jb_4_another_task_or_a_finished_job_frees_the_key(world: World, preset: Preset) -> None:
    """The key is one of (tenant, task)."""
    first = await preset["email"].using(tenant="acme", dedup_key="user-7").aenqueue()
    assert (await preset["webhook"].using(tenant="acme", dedup_key="user-7").aenqueue()).created
    assert (await preset["email"].using(tenant="globex", dedup_key="user-7").aenqueue()).created
    claim = await world.take("fast")
    assert claim.job.id == first.id
    await world.fail_claim(claim, BOOM)
    world.advance(1)
    assert not (await preset["email"].using(tenant="acme", dedup_key="user-7").aenqueue()).created
    await preset.app.jobs.acancel(first.id)
    assert (await preset["email"].using(tenant="acme", dedup_key="user-7").aenqueue()).created


async def test_003_jb_5_all_jobs_of_a_correlation_are_found_in_order(world: World, preset: Preset) -> None:
    """Any text will do; newest first, as everywhere (S51)."""
    traced = [
        await preset[task].using(correlation_id="user-action-123").aenqueue()
        for task in ("email", "analysis", "webhook")
    ]
    await preset["email"].using(correlation_id="user-action-124").aenqueue()
    await world.succeed(queue="slow")
    assert ids(await preset.app.jobs.afind(correlation_id="user-action-123")) == ids(traced)[::-1]


async def test_003_jb_6_parents_and_children_of_a_correlation_are_paired(preset: Preset) -> None:
    """A child names its parent, and is found by it."""
    parent = await preset["analysis"].using(tenant="acme", correlation_id="c1").aenqueue()
    children = [
        await preset["email"].using(tenant="acme", parent=parent, correlation_id="c1").aenqueue()
        for _ in range(2)
    ]
    found = await preset.app.jobs.afind(correlation_id="c1")
    assert {(job.parent_id, job.id) for job in found} == {
        (None, parent.id),
        *((parent.id, child.id) for child in children),
    }
    assert ids(await preset.app.jobs.afind(parent=parent.id)) == ids(children)[::-1]


async def test_003_jb_7_jobs_are_counted_by_what_they_wait_for(world: World, preset: Preset) -> None:
    """Pending, running, waiting for a retry, and how many minutes the oldest pending one waits: one call."""
    oldest = await preset["email"].aenqueue()
    world.advance(90)
    for _ in range(2):
        await preset["email"].aenqueue()
    await preset["analysis"].aenqueue()
    await world.take("slow")
    await preset["slow"].aenqueue()
    await world.fail(BOOM, "slow")
    counts = await preset.app.jobs.acount()
    assert (counts[State.READY], counts[State.RUNNING], counts[State.DELAYED]) == (3, 1, 1)
    stats = await preset.app.queues.astats()
    slow, fast = stats["slow"], stats["fast"]
    assert (slow.running, slow.retrying, slow.dead) == (1, 1, 0)
    assert (fast.ready, fast.oldest_at, fast.oldest_minutes) == (3, oldest.enqueued_at, 1.5)


@pytest.mark.parametrize(("retry", "state"), [(True, State.DELAYED), (False, State.DEAD)])
async def test_003_jb_8_a_running_job_fails_by_hand_with_and_without_retry(
    world: World, preset: Preset, *, retry: bool, state: State
) -> None:
    """It has one failure and the reason; its worker can settle it no more."""
    job = await preset["email"].aenqueue()
    claim = await world.take("fast")
    assert await preset.app.jobs.afail(job.id, retry=retry, reason="hangs") is state
    failed = await job.arefresh()
    assert (failed.state, failed.failures, failed.attempts[-1].message) == (state, 1, "hangs")
    assert await world.settle(claim, Succeeded()) is None
    world.advance(5)
    assert len(await world.claim(1, "fast")) == int(retry)


async def test_003_jb_8_a_running_job_is_taken_back(world: World, preset: Preset) -> None:
    """Ready again, with no failure."""
    job = await preset["email"].aenqueue()
    claim = await world.take("fast")
    assert await preset.app.jobs.atake_back(job.id, reason="wrong host") is State.READY
    assert (await job.arefresh()).failures == 0
    assert await world.settle(claim, Succeeded()) is None
    assert (await world.take("fast")).job.id == job.id


@pytest.mark.parametrize("delay", [None, 60])
async def test_003_jb_9_a_waiting_job_is_moved_to_the_dead_letters_with_a_reason(
    world: World, preset: Preset, delay: int | None
) -> None:
    """It never runs; one that runs is not moved."""
    job = await preset["email"].using(delay=delay).aenqueue()
    assert await preset.app.jobs.acondemn(job.id, reason="wrong list") == {job.id}
    moved = await job.arefresh()
    assert (moved.state, moved.because) == (State.DEAD, "condemned: wrong list")
    running = await preset["email"].aenqueue()
    world.advance(61)
    assert (await world.take("fast")).job.id == running.id
    assert await preset.app.jobs.acondemn(running.id, reason="late") == frozenset()


async def test_003_jb_11_who_created_a_job_is_stored_and_searchable(world: World, preset: Preset) -> None:
    """By its exact name, also after the job has ended, and counted as well."""
    by_ann = await preset["email"].using(tenant="acme", created_by="user:ann").aenqueue()
    await preset["email"].using(tenant="acme", created_by="user:ben").aenqueue()
    await world.succeed(queue="fast")
    found = await preset.app.jobs.afind(created_by="user:ann")
    assert [(job.id, job.created_by, job.state) for job in found] == [
        (by_ann.id, "user:ann", State.SUCCEEDED)
    ]
    assert (await world.record(by_ann)).created_by == "user:ann"
    assert (await preset.app.jobs.acount(created_by="user:ben")).total == 1
    assert (await preset.app.jobs.acount(created_by="user:an")).total == 0


@pytest.mark.parametrize("attempts", [1, 7])
async def test_003_jb_10_a_call_may_have_its_own_number_of_attempts(
    world: World, preset: Preset, attempts: int
) -> None:
    """It beats the queue's three."""
    job = await preset["email"].using(max_attempts=attempts).aenqueue()
    await world.fail_until_dead(BOOM, "fast")
    assert (await job.arefresh()).attempt == attempts


async def test_003_jb_13_the_last_error_and_its_time_are_on_the_job(world: World, preset: Preset) -> None:
    """Of the newest attempt."""
    job = await preset["email"].aenqueue()
    await world.fail(RuntimeError("first"), "fast")
    world.advance(1)
    claim = await world.take("fast")
    world.advance(2)
    await world.fail_claim(claim, RuntimeError("second"))
    last = (await job.arefresh()).attempts[-1]
    assert (last.message, last.ended_at) == ("second", to_datetime(world.now))


async def test_003_rp_1_delays_are_about_1_2_and_4_seconds(world: World, preset: Preset) -> None:
    """As met in the store; attempt three lies within 3,600 and 4,400 ms."""
    await preset["email"].using(max_attempts=4).aenqueue()
    assert await world.fail_until_dead(BOOM, "fast") == [1, 2, 4]
    low, high = D_RETRY.delay(3, 0.0), D_RETRY.delay(3, 1.0)
    assert (low, high) == (timedelta(milliseconds=3_600), timedelta(milliseconds=4_400))


def test_003_rp_2_no_delay_is_above_300_seconds() -> None:
    """However many attempts there were."""
    assert all(D_RETRY.delay(n, draw).total_seconds() <= 300 for n in range(1, 60) for draw in (0.0, 1.0))


async def test_003_rp_8_a_job_is_dead_after_its_attempts_with_all_details(
    world: World, preset: Preset
) -> None:
    """The original job and every error."""
    job = await preset["email"].using(tenant="acme").aenqueue(42)
    payload = (await world.record(job)).payload
    await world.fail_until_dead(ConnectionError("no route"), "fast")
    letter = await world.store.dead.get(DeadGetRequest(scope=ALL, id=job.id))
    assert letter is not None
    assert (letter.job.payload, letter.job.task, letter.job.failures) == (payload, "email", 3)
    shown = await job.arefresh()
    assert [(one.message, one.error_class) for one in shown.attempts] == [
        ("no route", ErrorClass.TRANSIENT)
    ] * 3
    with pytest.raises(JobFailed, match="no route"):
        await shown.aresult()


async def test_003_rp_9_no_job_is_run_twice_by_several_machines(world: World, preset: Preset) -> None:
    """Each machine with a store of its own on the same file."""
    jobs = await world.fill(preset["email"], 60)
    machines = [world.beside() for _ in range(4)]
    try:
        taken: list[UUID] = []
        while len(taken) < 60:
            rounds = await asyncio.gather(
                *(one.claim(5, "fast", worker=f"m{number}") for number, one in enumerate(machines))
            )
            taken += [claim.job.id for claims in rounds for claim in claims]
    finally:
        for one in machines:
            await one.aclose()
    assert sorted(taken) == sorted(ids(jobs))


async def test_003_op_11_old_finished_jobs_are_cleaned_up(world: World, preset: Preset) -> None:
    """A week after they ended; younger ones and waiting ones stay."""
    await preset["email"].aenqueue()
    await world.succeed(queue="fast")
    world.advance(3 * DAY / SECOND)
    young = await preset["email"].aenqueue()
    await world.succeed(queue="fast")
    waiting = await preset["email"].aenqueue()
    world.advance(4 * DAY / SECOND)
    assert (await world.prune()).jobs == 1
    assert ids(await preset.app.jobs.afind()) == ids([waiting, young])


async def test_003_fu_2_a_rate_holds_for_an_outside_service_over_all_its_tasks(world: World) -> None:
    """Two tasks in two queues share one limit of ten starts a minute."""
    app = world.app(
        queues=[Queue("default"), Queue("other")], gates=[Gate("geocoder", None, Rate(10, "minute"))]
    )
    tasks = [app.task(name=f"geo-{name}", queue=name, gate="geocoder")(work) for name in ("default", "other")]
    await world.declare()
    for task in tasks:
        await world.fill(task, 10)
    starts: list[Instant] = []
    for _ in range(20):
        reply = await world.ask(20, ("default", 20), ("other", 20))
        starts += [world.now] * len(reply.claims)
        world.advance(6)
    assert len(starts) == 20
    assert all(later - first >= MINUTE for first, later in zip(starts, starts[10:], strict=False))
