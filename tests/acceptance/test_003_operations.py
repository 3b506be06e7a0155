"""Descriptions D and E, procedures with real worker processes: stopping, killing, restarts, the doctor."""

from __future__ import annotations

import asyncio
import json
import signal
from datetime import timedelta
from functools import partial

from click.testing import CliRunner

from fairlane import Fail, Fairlane, State
from fairlane.cli.main import cli
from fairlane.model.instants import to_datetime
from tests.acceptance.crew import Crew
from tests.acceptance.presets import lanes, work
from tests.acceptance.working import until
from tests.acceptance.world import World


async def are_all_done(crew: Crew, number: int) -> bool:
    """Whether so many jobs have succeeded."""
    return (await crew.app.jobs.acount())[State.SUCCEEDED] == number


async def test_003_op_5_a_graceful_stop_completes_what_runs(crew: Crew) -> None:
    """Four run and end; nothing else is begun."""
    await crew.enqueue("hold", *range(6))
    worker = crew.start()
    await until(lambda: crew.count("began") == 4)
    worker.terminate()
    crew.go()
    assert await crew.ended(worker) == 0
    counts = await crew.app.jobs.acount()
    assert (counts[State.SUCCEEDED], counts[State.READY], counts[State.RUNNING]) == (4, 2, 0)


async def test_003_op_5_a_kill_loses_none(crew: Crew) -> None:
    """What was begun is begun again, and everything ends."""
    await crew.lead()
    await crew.enqueue("hold", *range(6))
    doomed = crew.start()
    await until(lambda: crew.count("began") == 4)
    doomed.send_signal(signal.SIGKILL)
    crew.go()
    crew.start()
    await until(lambda: are_all_done(crew, 6))
    assert set(crew.times("ended")) == set(range(6))


async def test_003_op_8_a_rolling_restart_under_load_loses_nothing(crew: Crew) -> None:
    """Each worker in turn is replaced while jobs keep coming; every job runs once."""
    workers = [await crew.join() for _ in range(2)]
    sent = 0
    for replaced in workers:
        await crew.enqueue("note", *range(sent, sent + 100))
        sent += 100
        await until(partial(crew.has_begun, sent - 50))
        await crew.join()
        replaced.terminate()
        assert await crew.ended(replaced) == 0
    await until(lambda: are_all_done(crew, sent))
    assert crew.times("ended") == dict.fromkeys(range(sent), 1)


async def test_003_op_12_one_process_enqueues_and_another_runs(crew: Crew) -> None:
    """The upkeep is done inside the worker: a delayed job becomes due there, and a schedule fires there."""
    worker = crew.start()
    (at_once,) = await crew.enqueue("note", 1)
    (delayed,) = await crew.enqueue("note", 2, delay=0.5)
    assert (await at_once.aresult(60), await delayed.aresult(60)) == (1, 2)
    await crew.app.schedules.aadd("tick", "note", every=1, arguments={"number": 3})
    await until(lambda: 3 in crew.times("ended"))
    await crew.app.schedules.aremove("tick")
    assert {pid for _, _, pid in crew.lines()} == {worker.pid}


async def test_004_rg_3_a_task_without_a_handler_is_reported(crew: Crew) -> None:
    """By the doctor, while a worker is there that does not know it."""
    (job,) = await crew.enqueue("note", 1)
    crew.start()
    await job.aresult(60)
    stranger = Fairlane(crew.place)
    async with stranger:
        await stranger.task(name="NOBODY_KNOWS_IT")(work).aenqueue()
    ran = await asyncio.to_thread(CliRunner().invoke, cli, ["--url", crew.place, "--json", "doctor"])
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    (tasks,) = [one for one in found if one["check"] == "tasks"]
    assert (ran.exit_code, tasks["level"]) == (1, "bad")
    assert "NOBODY_KNOWS_IT" in tasks["what"]


async def test_003_op_9_failures_of_the_last_hour_are_shown_by_task_with_the_newest_time(
    world: World,
) -> None:
    """Dead or to be retried; what failed before the hour, and other tasks that did not fail, are left out."""
    preset = await world.open(lanes(world.url))
    old = await preset["webhook"].using(tenant="acme").aenqueue()
    await world.fail_claim(await world.take("fast"), Fail("long ago"))
    world.advance(3_601)
    for error in (Fail("bounced"), TimeoutError("slow"), TimeoutError("slow")):
        await preset["email"].using(tenant="acme").aenqueue()
        await world.fail_claim(await world.take("fast"), error)
    newest = world.now
    world.advance(60)
    await preset["webhook"].using(tenant="acme").aenqueue()
    report = await preset.app.jobs.afailures(since=timedelta(hours=1))
    (email,) = report.tasks
    assert (email.task, email.failures, email.jobs, email.dead) == ("email", 3, 3, 1)
    assert (email.last_at, email.error) == (to_datetime(newest), "TimeoutError: slow")
    assert report.is_complete
    both = await preset.app.jobs.afailures(since=old.enqueued_at, task="webhook")
    assert [(one.task, one.dead) for one in both.tasks] == [("webhook", 1)]
    cut = await preset.app.jobs.afailures(since=old.enqueued_at, most=1)
    assert (cut.looked_at, cut.is_complete) == (2, False)
    assert (await preset.app.jobs.afailures(since=timedelta(hours=1), tenant="globex")).tasks == ()


async def test_003_op_10_jobs_are_counted_by_task_and_state_and_stuck_ones_listed(world: World) -> None:
    """Every task of the application is there; one that runs for over an hour is stuck, no younger one."""
    preset = await world.open(lanes(world.url))
    for _ in range(2):
        await preset["email"].using(tenant="acme").aenqueue()
    hanging = await preset["slow"].using(tenant="acme").aenqueue()
    await world.take("slow")
    world.advance(3_601)
    await world.succeed(queue="fast")
    await preset["slow"].using(tenant="globex").aenqueue()
    await world.take("slow")
    counts = await preset.app.tasks.acounts()
    assert set(counts) == set(preset.tasks)
    assert {state: n for state, n in counts["email"].items() if n} == {State.READY: 1, State.SUCCEEDED: 1}
    assert (counts["slow"][State.RUNNING], counts["webhook"].total) == (2, 0)
    assert all(one.is_complete for one in counts.values())
    page = await preset.app.jobs.astuck(3_600)
    assert ([job.id for job in page], page.cursor) == ([hanging.id], None)
    assert len((await preset.app.jobs.astuck(0, task="slow")).items) == 1
    assert (await preset.app.jobs.astuck(3_600, tenant="globex")).items == ()
