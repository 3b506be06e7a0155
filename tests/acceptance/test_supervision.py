"""Both descriptions: worker processes that die, or have had enough, are replaced by themselves."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlane import State
from tests.supervisor.conftest import APPLICATION, Shop, wait_for


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A shop on a file: what a supervisor does depends on no store."""
    made = Shop(tmp_path)
    yield made
    made.close()


def test_000_al_5_a_worker_process_that_dies_is_restarted_by_itself(shop: Shop) -> None:
    """Killed while it works: another takes its place, and jobs go on."""
    command = shop.start()
    (pid,) = command.serving(1)
    os.kill(pid, signal.SIGKILL)
    assert command.serving(2)[-1] != pid
    job = shop.nap.enqueue(0.0)
    wait_for(lambda: job.refresh().state is State.SUCCEEDED)


def test_001_wk_10_a_worker_process_is_recycled_after_so_many_jobs(shop: Shop) -> None:
    """Its successor runs the rest, and nothing runs twice."""
    command = shop.start(FAIRLANE_WORKER__MAX_JOBS="5")
    jobs = [shop.nap.enqueue(0.0) for _ in range(12)]
    wait_for(lambda: all(job.refresh().state is State.SUCCEEDED for job in jobs))
    assert set(shop.starts().values()) == {1}
    assert len({pid for _, pid in shop.notes()}) >= 2
    assert len(command.pids()) >= 1


def test_001_wk_10_a_worker_process_is_recycled_when_it_takes_too_much_memory(shop: Shop) -> None:
    """The job that took the memory ends first."""
    command = shop.start(FAIRLANE_WORKER__MAX_MEMORY="150MB", FAIRLANE_WORKER__RENEW_EVERY="0.2s")
    (pid,) = command.serving(1)
    job = shop.big.enqueue()
    command.serving(2)
    wait_for(lambda: pid not in command.pids())
    assert job.refresh().state is State.SUCCEEDED


def test_001_wk_6_sigint_is_immediate_by_setting(shop: Shop) -> None:
    """The first Ctrl-C stops a job that would run for an hour; it is tried again, and not lost."""
    command = shop.start(FAIRLANE_WORKER__SIGINT="immediate", FAIRLANE_WORKER__SHUTDOWN_DEADLINE="1h")
    job = shop.nap.enqueue(3_600.0)
    wait_for(lambda: job.refresh().state is State.RUNNING and bool(shop.starts()))
    command.signal(signal.SIGINT)
    assert command.end() == 0
    found = job.refresh()
    assert found.state in {State.DELAYED, State.READY}
    assert [one.outcome for one in found.attempts] == ["failed"]


BLOCKS = """
import time

@app.task(name="block", timeout=None)
async def block(ctx: Context) -> None:
    note("start", ctx)
    time.sleep(3600)  # in the event loop: nothing else runs
"""


def test_001_dg_7_sigusr1_writes_the_stacks_of_all_threads_and_tasks(shop: Shop) -> None:
    """With tenant and job, also while a handler blocks the loop; the supervisor passes the signal on."""
    shop.write(APPLICATION + BLOCKS)
    command = shop.start()
    command.serving(1)
    asynchronous = shop.nap.using(tenant="globex").enqueue(600.0)
    wait_for(lambda: len(shop.notes()) == 1)
    blocking = shop.app.task(name="block", timeout=None)(_block).using(tenant="acme").enqueue()
    wait_for(lambda: len(shop.notes()) == 2)
    command.signal(signal.SIGUSR1)
    (dump,) = command.until("worker_dump")
    assert f"tenant globex, job {asynchronous.id}, task nap, attempt 1" in dump["stacks"]
    assert f"tenant acme, job {blocking.id}, task block, attempt 1" in dump["stacks"]
    for word in ("thread MainThread", "thread fairlane-portal", "in block", "in nap"):
        assert word in dump["stacks"]


def test_001_fm_9_a_stalled_worker_dumps_its_stacks_and_is_restarted(shop: Shop) -> None:
    """The jobs that waited beside the one that blocks everything are done by the next process."""
    shop.write(APPLICATION + BLOCKS)
    command = shop.start(FAIRLANE_WORKER__STALLED_AFTER="1s", SHOP_SLOTS="1")
    command.serving(1)
    blocking = shop.app.task(name="block", timeout=None)(_block).using(tenant="acme").enqueue()
    wait_for(lambda: len(shop.notes()) == 1)
    waiting = shop.nap.using(tenant="globex").enqueue(0.0)
    (stalled,) = command.until("worker_stalled")
    (dump,) = command.until("worker_dump")
    assert dump["worker"] == stalled["worker"]
    assert f"job {blocking.id}, task block" in dump["stacks"]
    (ended,) = command.until("process_ended")
    assert ended["code"] == 75
    wait_for(lambda: waiting.refresh().state is State.SUCCEEDED)


async def _block() -> None:
    """Stand for the handler of the other process."""
