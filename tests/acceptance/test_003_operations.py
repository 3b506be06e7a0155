"""Descriptions D and E, procedures with real worker processes: stopping, killing, restarts, the doctor."""

from __future__ import annotations

import asyncio
import json
import signal
from functools import partial

from click.testing import CliRunner

from fairlane import Fairlane, State
from fairlane.cli.main import cli
from tests.acceptance.crew import Crew
from tests.acceptance.presets import work
from tests.acceptance.working import until


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
    """The upkeep is done inside the worker: a delayed job becomes due there."""
    worker = crew.start()
    (at_once,) = await crew.enqueue("note", 1)
    (delayed,) = await crew.enqueue("note", 2, delay=0.5)
    assert (await at_once.aresult(60), await delayed.aresult(60)) == (1, 2)
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
