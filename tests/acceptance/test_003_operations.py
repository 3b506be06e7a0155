"""Description D, its procedures with real worker processes: stopping, killing, rolling restarts."""

from __future__ import annotations

import signal
from functools import partial

import pytest

from fairlane import State
from tests.acceptance.crew import Crew
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
    await crew.enqueue("hold", *range(6))
    crew.start()
    await until(lambda: crew.count("began") == 4)
    crew.processes[0].send_signal(signal.SIGKILL)
    crew.go()
    crew.start()
    await until(lambda: are_all_done(crew, 6))
    assert set(crew.times("ended")) == set(range(6))


@pytest.mark.parametrize("rounds", [3])
async def test_003_op_8_a_rolling_restart_under_load_loses_nothing(crew: Crew, rounds: int) -> None:
    """Each worker in turn is replaced while jobs keep coming; every job runs once."""
    workers = [crew.start() for _ in range(2)]
    sent = 0
    for _ in range(rounds):
        for place in range(2):
            await crew.enqueue("note", *range(sent, sent + 50))
            sent += 50
            await until(partial(crew.has_begun, sent - 25))
            replaced, workers[place] = workers[place], crew.start()
            replaced.terminate()
            assert await crew.ended(replaced) == 0
    await until(lambda: are_all_done(crew, sent))
    assert crew.times("ended") == dict.fromkeys(range(sent), 1)


async def test_003_op_12_one_process_enqueues_and_another_runs(crew: Crew) -> None:
    """The upkeep is done inside the worker: a delayed job becomes due there."""
    worker = crew.start()
    (at_once,) = await crew.enqueue("note", 1)
    (delayed,) = await crew.enqueue("note", 2, delay=0.5)
    assert (await at_once.aresult(30), await delayed.aresult(30)) == (1, 2)
    assert {pid for _, _, pid in crew.lines()} == {worker.pid}
