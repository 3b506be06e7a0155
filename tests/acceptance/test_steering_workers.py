"""Workers that are looked into, paused and stopped from elsewhere, as two descriptions ask (S33, S70)."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner

from fairlane import Context, ErrorClass, Fairlane, Queue, QueueNotEmpty, State
from fairlane.app.worker_settings import WorkerSettings
from fairlane.cli.main import cli
from fairlane.model.instants import DAY, SECOND
from fairlane.store.contract.mailbox import AskRequest, ReadAnswerRequest
from tests.acceptance.presets import work
from tests.acceptance.working import Stage, at_work, burst, until
from tests.acceptance.world import ALL, World

SOON = WorkerSettings(renew_every=SECOND // 20)
"""A worker that tells its state, and looks for questions, many times a second."""


async def command(world: World, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """Run one command on the world's store; return its exit code and its answer, an object a line."""
    ran = await asyncio.to_thread(CliRunner().invoke, cli, ["--url", world.url, "--json", *words])
    return ran.exit_code, [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]


async def until_it_is(app: Fairlane, state: str) -> None:
    """Wait until the registry says so of the only worker."""

    async def is_so() -> bool:
        return [worker.state for worker in await app.workers.alist()] == [state]

    await until(is_so)


async def test_001_cp2_7_a_paused_worker_runs_nothing_until_it_is_resumed(world: World) -> None:
    """Then everything."""
    app = world.one_lane(2)
    task = app.task(name="work")(work)
    async with at_work(app, settings=SOON) as worker:
        await until_it_is(app, "idle")
        await app.workers.apause(worker.id)
        await until_it_is(app, "paused")
        jobs = await app.aenqueue_many([task.bind(number) for number in range(5)])
        assert (await app.workers.astatus(worker.id)).lanes[0].running == 0
        assert (await app.jobs.acount())[State.READY] == 5
        await app.workers.aresume(worker.id)
        assert [await job.aresult(60) for job in jobs] == list(range(5))


async def test_001_wk_1_a_paused_worker_says_so(world: World, stage: Stage) -> None:
    """Idle, paused, paused while a job still runs, idle again."""
    app = world.one_lane(2)
    hold = app.task(name="hold")(stage.handler("hold"))
    async with at_work(app, settings=SOON) as worker:
        await until_it_is(app, "idle")
        await hold.aenqueue(1)
        await until(lambda: stage.present["hold"] == 1)
        await app.workers.apause(worker.id)
        await until_it_is(app, "paused")
        stage.let_go("hold")
        await until(lambda: stage.has_ended("hold", 1))
        await until_it_is(app, "paused")
        await app.workers.aresume(worker.id)
        await until_it_is(app, "idle")


async def test_001_wk_3_a_job_without_a_handler_fails_at_once_by_setting(world: World) -> None:
    """With a clear reason, and without another attempt."""
    job = await world.app().task(name="elsewhere")(work).aenqueue(7)
    await burst(world.app(), settings=WorkerSettings(unknown_task="fail"))
    dead = await job.arefresh()
    assert (dead.state, dead.attempts[-1].error_class) == (State.DEAD, ErrorClass.UNKNOWN_TASK)
    assert 'unknown_task is "fail"' in str(dead.because)


async def test_001_dg_3_a_worker_is_looked_into_paused_resumed_and_shut_down(
    world: World, stage: Stage
) -> None:
    """By the command line, from any machine; the command answers when the worker has."""
    app = world.one_lane(2)
    job = await app.task(name="hold")(stage.handler("hold")).using(tenant="acme").aenqueue(1)
    async with AsyncExitStack() as stack:
        worker = await stack.enter_async_context(at_work(app, settings=SOON))
        await until(lambda: stage.present["hold"] == 1)
        code, (status,) = await command(world, "workers", "status", worker.id)
        assert (code, status["id"]) == (0, worker.id)
        (slot,) = status["slots"]
        assert (slot["tenant"], slot["task"], slot["job"]) == ("acme", "hold", str(job.id))
        for verb, state in (("pause", "paused"), ("resume", "busy"), ("stop", "draining")):
            assert (await command(world, "workers", verb, worker.id))[0] == 0
            await until_it_is(app, state)
        stage.let_go("hold")
    assert (await job.arefresh()).state is State.SUCCEEDED
    assert await app.workers.alist() == ()


async def test_001_dg_3_other_words_are_refused(world: World) -> None:
    """By the command line, and by a worker that is asked with one in the store."""
    app = world.one_lane(2)
    async with at_work(app, settings=SOON) as worker:
        await until_it_is(app, "idle")
        assert (await command(world, "workers", "dance", worker.id))[0] == 2
        id = uuid4()
        ask = AskRequest(scope=ALL, id=id, worker=worker.id, kind="dance", valid_for=60 * SECOND)
        assert await world.store.mailbox.ask(ask)

        async def is_refused() -> bool:
            found = await world.store.mailbox.read(ReadAnswerRequest(scope=ALL, id=id))
            return found is not None and b"does not know the question 'dance'" in (found.text or b"")

        await until(is_refused)
        assert [one.state for one in await app.workers.alist()] == ["idle"]


async def test_001_dg_1_the_command_line_lists_jobs_that_run_for_an_hour(world: World) -> None:
    """The longest first; younger ones are not there."""
    app = world.app()
    task = app.task(name="work", timeout=86_400)(work)
    for minutes in (30, 40, 0):
        await task.aenqueue(1)
        await world.take()
        world.advance(60 * minutes)
    code, found = await command(world, "jobs", "stuck", "--age", "1h")
    assert code == 0
    (one,) = found
    assert (one["task"], one["state"]) == ("work", "running")


async def test_001_dg_1_the_command_line_runs_the_clean_up_now(world: World) -> None:
    """It removes what is past its retention, says how much, and is audited."""
    app = world.app()
    task = app.task(name="work")(work)
    await task.aenqueue(1)
    await world.succeed()
    world.advance(7 * DAY / SECOND)
    alive = await task.aenqueue(2)
    code, (done,) = await command(world, "duties", "run", "prune", "--note", "make room")
    assert (code, done["did"]) == (0, "1 succeeded removed")
    assert [job.id for job in await app.jobs.afind()] == [alive.id]
    (entry,) = (await app.audit.afind()).items
    assert (entry.kind, entry.subject, entry.note) == ("duties.run", "duty prune", "make room")


async def test_001_dg_5_one_job_is_inspected_and_its_way_out_is_named(world: World) -> None:
    """A worker died with it, and nobody does the duties."""
    job = await world.app().task(name="work")(work).aenqueue(1)
    await world.take()
    world.advance(60)
    code, found = await command(world, "doctor", "job", str(job.id))
    assert code == 1
    bad = {one["check"]: one for one in found[0]["checks"] if one["level"] == "bad"}
    assert "nobody has reclaimed it" in bad["claim"]["what"]
    assert any("fairlane jobs take-back" in action for action in found[0]["suggested_actions"])


async def test_001_ex_10_an_empty_queue_is_removed_without_a_restart(world: World) -> None:
    """One with a job is refused, and nothing of it is lost."""
    app = world.app(queues=[Queue("default"), Queue("bulk", max_waiting=5)])
    task = app.task(name="work", queue="bulk")(work)
    await world.declare()
    await task.aenqueue(7)
    with pytest.raises(QueueNotEmpty):
        await app.queues.aremove("bulk", note="no longer used")
    await world.succeed(queue="bulk")
    await app.queues.aremove("bulk", note="no longer used")
    assert "bulk" not in {view.name for view in await app.queues.alist() if view.max_waiting}


async def test_001_rt_11_retry_statistics_by_task(world: World) -> None:
    """How many succeeded, after how many attempts, and what they failed of."""
    app = world.app()
    task = app.task(name="work", max_attempts=3)(work)
    await world.declare()
    for failures in (0, 2, 3):
        await task.aenqueue(failures)
        for _ in range(failures):
            await world.fail(ConnectionError("the line is busy"))
            world.advance(3_600)
            await world.promote()
        if failures < 3:
            await world.succeed()
    (found,) = (await app.tasks.aretries(since=timedelta(days=1))).tasks
    assert (found.task, found.jobs, found.succeeded, found.after_retry, found.dead) == ("work", 3, 2, 1, 1)
    assert (round(found.mean_attempts, 2), round(found.success_rate, 2)) == (2.33, 0.67)
    assert dict(found.errors) == {"ConnectionError: the line is busy": 5}


async def test_003_jb_12_a_handler_gets_its_resources(world: World) -> None:
    """Opened once for all jobs of a worker, and closed when it ends."""
    app = world.one_lane(2)
    opened: list[Line] = []

    class Line:
        """What a handler needs to send something."""

        is_open = True

    @app.resource(Line)
    async def line() -> Any:
        opened.append(Line())
        yield opened[-1]
        opened[-1].is_open = False

    @app.task(name="send")
    async def send(ctx: Context, number: int) -> bool:
        return ctx.resource(Line).is_open

    jobs = await app.aenqueue_many([send.bind(number) for number in range(3)])
    await burst(app)
    assert [await job.aresult(1) for job in jobs] == [True] * 3
    assert [one.is_open for one in opened] == [False]
