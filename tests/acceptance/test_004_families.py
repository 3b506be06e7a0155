"""Description E, its families: where types go, what goes first, gates, retries."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fairlane import Backoff, InvalidJob, Lane, State, WrongState
from fairlane.model.instants import DAY, SECOND, to_datetime
from fairlane.model.policy.overrides import PolicyChange, Subject, SubjectKind
from fairlane.model.retry.decision import Succeeded
from fairlane.model.scheduling.lanes import LaneClock
from fairlane.store.contract.policies import OverrideRequest
from tests.acceptance.presets import E_HOMES, E_PRIORITIES, E_RETRY, Preset, families, work
from tests.acceptance.world import ALL, LEASE, World

BOOM = RuntimeError("boom")


@pytest.fixture
async def preset(world: World) -> Preset:
    """Return the preset of description E, in force."""
    return await world.open(families(world.url))


@pytest.mark.parametrize(("task", "home"), E_HOMES.items())
async def test_004_rg_1_each_type_stays_in_its_family(preset: Preset, task: str, home: str) -> None:
    """Fourteen types; sending one elsewhere is refused."""
    assert len(E_HOMES) == 14
    assert (await preset[task].aenqueue()).queue == home
    with pytest.raises(InvalidJob, match="stays in its home queue"):
        await preset[task].using(queue="low" if home != "low" else "bulk").aenqueue()


async def test_004_qf_2_smaller_priorities_go_first(world: World, preset: Preset) -> None:
    """Each family's jobs carry 0, 5, 6, 7 or 8; in one queue the smaller one is handed out first."""
    shown = {home: (await preset[task].aenqueue()).priority for task, home in E_HOMES.items()}
    assert shown == E_PRIORITIES
    app = world.app(priority="lower_first")
    task = app.task(name="mixed", queue="mixed")(work)
    jobs = [await task.using(priority=priority).aenqueue() for priority in (8, 6, 0, 7, 5)]
    order = [claim.job.id for claim in await world.claim(5, "mixed")]
    assert [next(job.priority for job in jobs if job.id == id) for id in order] == [0, 5, 6, 7, 8]


async def test_004_qf_2_a_strict_lane_serves_the_families_in_their_order(
    world: World, preset: Preset
) -> None:
    """Where families share slots: nothing of a later one while an earlier one has ready jobs."""
    homes = {home: task for task, home in E_HOMES.items()}
    for home in reversed(E_PRIORITIES):
        await world.fill(preset[homes[home]], 2)
    clock = LaneClock(Lane("shared", 3, list(E_PRIORITIES), order="strict"))
    served: list[str] = []
    while len(served) < 10:
        reply = await world.ask(1, *clock.queue_requests(1, {}))
        served += [claim.job.queue for claim in reply.claims]
        clock.started({claim.job.queue: 1 for claim in reply.claims})
    assert served == [home for home in E_PRIORITIES for _ in range(2)]


@pytest.mark.parametrize(
    ("failures", "low", "high"), [(1, 22.5, 37.5), (2, 45, 75), (3, 90, 150), (4, 180, 300), (5, 360, 600)]
)
def test_004_rt_1_the_published_delays(failures: int, low: float, high: float) -> None:
    """Thirty seconds doubling, a quarter either way."""
    assert E_RETRY.delay(failures, 0.0).total_seconds() == low
    assert E_RETRY.delay(failures, 1.0).total_seconds() == high


def test_004_rt_2_the_formula_is_a_base_of_a_minute() -> None:
    """Its first delay is 45 to 75 seconds; we follow the table (S26)."""
    formula = Backoff.exponential(60, cap=E_RETRY.cap, jitter=0.25)
    assert [formula.delay(1, draw).total_seconds() for draw in (0.0, 1.0)] == [45, 75]


@pytest.mark.parametrize(("base", "attempts", "waits"), [(30, 5, [30, 60, 120, 240]), (10, 3, [10, 20])])
async def test_004_rt_3_base_delay_and_attempts_are_settings(
    world: World, base: float, attempts: int, waits: list[float]
) -> None:
    """Thirty and five in the preset, others elsewhere."""
    app = world.app()
    retry = Backoff.exponential(base, jitter=0.25)
    await app.task(name="work", retry=retry, max_attempts=attempts)(work).aenqueue()
    assert await world.fail_until_dead(BOOM) == waits


async def test_004_rt_4_a_job_is_final_after_five_attempts(world: World, preset: Preset) -> None:
    """The fourth failure is not the last, the fifth is."""
    job = await preset["STOCK_REFRESH"].aenqueue()
    assert len(await world.fail_until_dead(BOOM, "high")) == 4
    ended = await job.arefresh()
    assert (ended.state, ended.attempt) == (State.DEAD, 5)
    world.advance(86_400)
    assert await world.claim(1, "high") == []


async def test_004_rt_5_four_delays_are_about_450_seconds(world: World, preset: Preset) -> None:
    """Within a quarter, whatever is drawn."""
    await preset["STOCK_REFRESH"].aenqueue()
    assert sum(await world.fail_until_dead(BOOM, "high")) == 450
    for draw, total in ((0.0, 337.5), (1.0, 562.5)):
        assert sum(E_RETRY.delay(n, draw).total_seconds() for n in range(1, 5)) == total


async def test_004_rt_6_jobs_that_fail_together_do_not_retry_together(world: World, preset: Preset) -> None:
    """A hundred failures at one instant: no second has more than a fifth of their retries."""
    draws = random.Random(6)
    jobs = await world.fill(preset["STOCK_REFRESH"], 100)
    for claim in await world.claim(100, "high"):
        await world.fail_claim(claim, BOOM, draw=draws.random())
    due = [(await world.record(job)).run_at for job in jobs]
    seconds = [(at - world.now) // SECOND for at in due]
    assert all(22 <= second <= 37 for second in seconds)
    assert max(map(seconds.count, seconds)) <= 20


async def running(world: World, preset: Preset, number: int) -> list[Any]:
    """Fill the gate: enqueue so many screenshots and claim what can be."""
    await world.fill(preset["SCREENSHOT_CAPTURE"], number)
    return await world.claim(number, "screenshot")


async def test_004_cc_2_a_job_at_a_full_gate_waits_without_failing(world: World, preset: Preset) -> None:
    """No attempt is used up; it runs as soon as a place is free."""
    claims = await running(world, preset, 5)
    assert len(claims) == 3
    waiting = (await preset.app.jobs.afind(state=State.READY)).items
    assert [(job.attempt, job.failures) for job in waiting] == [(0, 0), (0, 0)]
    assert await world.claim(1, "screenshot") == []
    await world.settle(claims[0], Succeeded())
    assert (await world.take("screenshot")).job.attempt == 1


@pytest.mark.parametrize("number", [1, 3])
async def test_004_cc_3_the_places_of_a_gate_can_be_counted(
    world: World, preset: Preset, number: int
) -> None:
    """Held and free; a job that finds none says which gate it waits for."""
    await running(world, preset, number)
    gate = await preset.app.gates.aget("screenshots")
    assert (gate.limit, gate.used, gate.free) == (3, number, 3 - number)
    waiting = await preset["SCREENSHOT_CAPTURE"].using(tenant="acme").aenqueue()
    why = await preset.app.jobs.aexplain(waiting.id)
    if number == 3:
        assert (why.reason, why.subject) == ("gate", "gate screenshots")
    else:
        assert why.reason == "no_worker"


@pytest.mark.parametrize("size", [1, 3, 12])
async def test_004_cc_4_a_gate_of_any_size_is_exact_over_several_workers(world: World, size: int) -> None:
    """Each worker over a store of its own; the sum never passes the limit."""
    preset = await world.open(families(world.url, gate=size))
    await world.fill(preset["SCREENSHOT_CAPTURE"], 30)
    other = world.beside()
    try:
        held = 0
        for number in range(10):
            held += len(await (world, other)[number % 2].claim(2, "screenshot", worker=f"w{number}"))
            assert held <= size
        assert held == size
    finally:
        await other.aclose()


async def test_004_cc_4_a_crash_gives_the_places_back(world: World, preset: Preset) -> None:
    """As soon as the lost claims are taken back."""
    await running(world, preset, 6)
    world.advance(LEASE / SECOND)
    assert len((await world.reclaim()).lost) == 3
    assert len(await world.claim(6, "screenshot")) == 3


async def test_004_cc_4_a_gate_is_changed_while_it_is_used(world: World, preset: Preset) -> None:
    """At the next claim; what runs is not interrupted."""
    await running(world, preset, 8)
    gate = Subject(SubjectKind.GATE, "screenshots")
    await world.store.policies.override(
        OverrideRequest(scope=ALL, subject=gate, change=PolicyChange(limit=5), who="ops")
    )
    assert len(await world.claim(8, "screenshot")) == 2


async def test_004_cc_5_two_workers_never_hold_the_same_job(world: World, preset: Preset) -> None:
    """Turn by turn, until all are taken."""
    await world.fill(preset["STOCK_REFRESH"], 10)
    taken = [
        claim.job.id for number in range(6) for claim in await world.claim(2, "high", worker=f"w{number % 2}")
    ]
    assert len(taken) == len(set(taken)) == 10


async def test_004_cf_2_the_record_of_a_job(world: World, preset: Preset) -> None:
    """Who holds it, up to 128 characters; attempts of five; last error; when it was made and is due."""
    job = await preset["STOCK_REFRESH"].using(delay=60).aenqueue()
    assert (job.attempt, job.max_attempts) == (0, 5)
    assert job.enqueued_at == to_datetime(world.now)
    assert job.run_at == to_datetime(world.now + 60 * SECOND)
    world.advance(60)
    name = "w" * 128
    claim = await world.take("high", worker=name)
    assert (await world.record(job)).worker == name
    failed = await world.fail_claim(claim, RuntimeError("no quotes"), worker=name)
    assert failed is State.DELAYED
    shown = await job.arefresh()
    assert [(one.worker, one.message) for one in shown.attempts] == [(name, "no quotes")]


async def test_004_fu_5_the_priority_of_a_waiting_job_is_changed_by_hand(
    world: World, preset: Preset
) -> None:
    """It overtakes at once, and is shown as this application counts; a running job is not touched."""
    task = preset["SOCIAL_REFRESH"].using(tenant="acme")
    first, second = await task.aenqueue(), await task.aenqueue()
    assert (await preset.app.jobs.aedit(second.id, priority=0)).priority == 0
    assert [claim.job.id for claim in await world.claim(2, "low")] == [second.id, first.id]
    with pytest.raises(WrongState):
        await preset.app.jobs.aedit(second.id, priority=1)


async def test_004_fu_4_a_job_that_waited_ten_minutes_goes_before_any_newer_one(
    world: World, preset: Preset
) -> None:
    """The largest difference of priorities is worth ten minutes (S20)."""
    app = world.app(priority="lower_first")
    task = app.task(name="aged", queue="aged")(work)
    old = await task.using(priority=100).aenqueue()
    world.advance(599)
    newer = await task.using(priority=0).aenqueue()
    world.advance(2)
    newest = await task.using(priority=0).aenqueue()
    order = [claim.job.id for claim in await world.claim(3, "aged")]
    assert order == [newer.id, old.id, newest.id]


async def test_004_cd_9_one_type_is_kept_for_90_days(world: World) -> None:
    """The other types of the same tenant and queue go after their week."""
    app = world.app(config={"retention": {"tasks": {"CLICK_ROLLUP": "90d"}}})
    rollup, other = (app.task(name=name)(work) for name in ("CLICK_ROLLUP", "CAPTURE"))
    jobs = []
    for task in (rollup, other):
        jobs.append(await task.using(tenant="acme").aenqueue())
        await world.succeed()
    world.advance(90 * DAY / SECOND - 1)
    assert (await world.prune()).jobs == 1
    assert [job.id for job in await app.jobs.afind()] == [jobs[0].id]
    world.advance(1)
    assert (await world.prune()).jobs == 1
    assert list(await app.jobs.afind()) == []
