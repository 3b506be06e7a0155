"""Description D at work: a fast lane and a general one, what a handler sees, timeouts."""

from __future__ import annotations

import asyncio
from typing import Any

from fairlane import Backoff, Context, ErrorClass, Fairlane, Lane, Queue, State, Task
from tests.acceptance.presets import D_HOMES, Preset, lanes, work
from tests.acceptance.working import Stage, at_work, burst, until
from tests.acceptance.world import World


async def staged(world: World, stage: Stage) -> dict[str, Task[..., Any]]:
    """Return the lanes of description D with a fast and a slow task on the stage."""
    preset = await world.open(lanes(world.url))
    return {
        kind: preset.app.task(name=f"staged-{kind}", queue=kind)(stage.handler(kind))
        for kind in ("fast", "slow")
    }


async def test_003_ln_1_a_fast_job_starts_at_once_while_slow_ones_fill_the_general_lane(
    world: World, stage: Stage
) -> None:
    """Five slow ones run and more wait."""
    tasks = await staged(world, stage)
    await world.fill(tasks["slow"], 10)
    async with at_work(world.apps[-1]):
        await until(lambda: stage.present["slow"] == 5)
        await tasks["fast"].aenqueue()
        await until(lambda: stage.present["fast"] == 1)
        assert stage.present["slow"] == 5
        stage.let_go("fast")
        stage.let_go("slow")
        await until(lambda: len(stage.ended) == 11)


async def test_003_ln_2_the_fast_lane_never_runs_slow_jobs(world: World, stage: Stage) -> None:
    """Twenty slow jobs, nothing else: five at once, and three slots stay free."""
    tasks = await staged(world, stage)
    await world.fill(tasks["slow"], 20)
    async with at_work(world.apps[-1]) as worker:
        await until(lambda: stage.present["slow"] == 5)
        fast = await tasks["fast"].aenqueue()
        await until(lambda: stage.present["fast"] == 1)
        assert worker.running == 6
        stage.let_go("fast")
        stage.let_go("slow")
        await fast.aresult(60)
        await until(lambda: stage.count("slow") == 20)
    assert stage.most["slow"] == 5


async def test_003_ln_3_the_general_lane_also_runs_fast_jobs_when_it_is_free(
    world: World, stage: Stage
) -> None:
    """Eight at once."""
    tasks = await staged(world, stage)
    await world.fill(tasks["fast"], 12)
    async with at_work(world.apps[-1]):
        await until(lambda: stage.present["fast"] == 8)
        stage.let_go("fast")
        await until(lambda: stage.count("fast") == 12)
    assert stage.most["fast"] == 8


async def test_003_ln_5_a_worker_runs_only_what_its_lanes_serve(world: World) -> None:
    """A lane serves queues, never tasks (S47): what is enabled is a lane."""
    preset = await world.open(lanes(world.url))
    fast, slow = await preset["email"].aenqueue(1), await preset["analysis"].aenqueue(2)
    await burst(preset.app, lanes=["fast"])
    assert await fast.aresult(1) == 1
    assert (await slow.arefresh()).state is State.READY
    assert (await slow.arefresh()).attempt == 0


async def test_003_ln_8_the_seven_tasks_of_the_example_run_end_to_end(world: World) -> None:
    """Each gives its result."""
    preset: Preset = await world.open(lanes(world.url))
    names = [*D_HOMES, "analysis", "elevation"]
    assert len(names) == 7
    jobs = [await preset[name].aenqueue(number) for number, name in enumerate(names)]
    await burst(preset.app)
    assert [await job.aresult(1) for job in jobs] == list(range(7))


async def test_003_jb_12_a_handler_gets_id_payload_correlation_and_attempts(world: World) -> None:
    """In its context; the second attempt knows that it is one."""
    app = world.app()
    seen: list[Any] = []

    async def handler(ctx: Context, number: int) -> None:
        seen.append((ctx.job.id, ctx.tenant, number, ctx.job.correlation_id, ctx.attempt, ctx.fence))
        if ctx.attempt == 1:
            raise ValueError

    task = app.task(name="handler", retry=Backoff.delays(1))(handler)
    job = await task.using(tenant="acme", correlation_id="user-action-123").aenqueue(7)
    await burst(app)
    world.advance(1)
    await burst(app)
    first, second = seen
    assert first[:5] == (job.id, "acme", 7, "user-action-123", 1)
    assert second[:5] == (job.id, "acme", 7, "user-action-123", 2)
    assert second[5] > first[5]


async def test_003_rp_7_a_timeout_ends_the_call_and_counts_as_a_failure(world: World) -> None:
    """It uses up one of the attempts."""
    app = world.app()
    cancelled = asyncio.Event()

    async def call_out() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    task = app.task(name="call", timeout=1, max_attempts=3, retry=Backoff.delays(10))(call_out)
    job = await task.aenqueue()
    await burst(app)
    assert cancelled.is_set()
    waiting = await job.arefresh()
    assert (waiting.state, waiting.failures) == (State.DELAYED, 1)
    assert waiting.attempts[0].error_class is ErrorClass.TIMEOUT


async def test_003_fu_3_there_may_be_more_than_two_lanes(world: World, stage: Stage) -> None:
    """Five, each with its own slots."""
    names = [f"lane-{number}" for number in range(1, 6)]
    app: Fairlane = world.app(
        queues=[Queue(name) for name in names],
        lanes=[Lane(name, slots, [name], headroom=0) for slots, name in enumerate(names, start=1)],
    )
    for name in names:
        await world.fill(app.task(name=name, queue=name)(stage.handler(name)), 6)
    async with at_work(app):
        await until(lambda: stage.present.total() == 15)
        for name in names:
            stage.let_go(name)
        await until(lambda: len(stage.ended) == 30)
    assert stage.most == {name: slots for slots, name in enumerate(names, start=1)}


async def test_003_fu_4_a_payload_of_an_older_version_is_brought_up_to_the_new_one(world: World) -> None:
    """The newest code runs what older code has enqueued; the stored bytes stay as they were."""
    old = world.app()
    job = await old.task(name="mail")(work).aenqueue(7)
    before = await world.record(job)
    new = world.app()
    seen: list[int] = []

    async def second(count: int) -> None:
        seen.append(count)

    new.task(name="mail", version=2)(second).upcast(1)(lambda arguments: {"count": arguments["number"]})
    await burst(new)
    after = await world.record(job)
    assert seen == [7]
    assert (after.version, after.payload) == (before.version, before.payload) == (1, before.payload)
