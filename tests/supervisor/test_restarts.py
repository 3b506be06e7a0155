"""A process that ends is replaced, and the log says why it ended."""

from __future__ import annotations

import os
import signal

import pytest

from fairlane import State
from tests.families import parent_of
from tests.supervisor.conftest import APPLICATION, Shop, wait_for


def test_a_killed_process_is_replaced_and_its_job_runs_again(shop: Shop) -> None:
    """SIGKILL of the worker, not of the supervisor."""
    command = shop.start(FAIRLANE_WORKER__LEASE="1s", FAIRLANE_WORKER__RENEW_EVERY="0.3s")
    (pid,) = command.serving(1)
    job = shop.nap.enqueue(600.0)
    wait_for(lambda: len(shop.notes()) == 1)
    os.kill(pid, signal.SIGKILL)
    (ended,) = command.until("process_ended")
    assert (ended["pid"], ended["code"], ended["level"]) == (pid, -9, "error")
    assert f"worker process 1 of 1, pid {pid}, was killed by SIGKILL" in ended["message"]
    assert ended["message"].endswith("the next one starts in 0.1 s")
    successor = command.serving(2)[-1]
    wait_for(lambda: len(shop.notes()) == 2)
    first, second = (pid for _, pid in shop.notes())
    assert (first, parent_of(second)) == (pid, successor)  # a lost job runs alone, in a child (S39)
    job.cancel("enough")
    command.signal(signal.SIGTERM)
    assert command.end() == 0


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT])
def test_the_log_names_the_signal_that_a_process_died_of(shop: Shop, number: signal.Signals) -> None:
    """As an extension in C ends it."""
    command = shop.start("--processes", "2")
    command.serving(2)
    shop.kill.enqueue(int(number))
    ended = command.until("process_ended")
    assert f"was killed by {number.name}" in ended[0]["message"]
    command.serving(3)
    assert len(command.pids()) == 2


def test_a_process_that_has_done_its_jobs_is_replaced_at_once(shop: Shop) -> None:
    """`max_jobs`: exit code 75, no pause, and every job runs once."""
    command = shop.start(FAIRLANE_WORKER__MAX_JOBS="3")
    jobs = [shop.nap.enqueue(0.0) for _ in range(9)]
    wait_for(
        lambda: all(job.refresh().state is State.SUCCEEDED for job in jobs), lambda: "".join(command.lines)
    )
    assert max(shop.starts().values()) == 1
    assert len({pid for _, pid in shop.notes()}) >= 3
    assert not command.events("process_killed")
    command.signal(signal.SIGTERM)
    assert command.end() == 0
    assert not [one for one in command.events("process_ended") if one["pause_s"]]


def test_without_a_supervisor_it_ends_with_75(shop: Shop) -> None:
    """Whoever started it starts another."""
    command = shop.start("--processes", "0", FAIRLANE_WORKER__MAX_JOBS="1")
    shop.nap.enqueue(0.0)
    assert command.end() == 75
    assert not command.events("process_started")


def test_a_process_that_takes_too_much_memory_is_replaced(shop: Shop) -> None:
    """`max_memory`: it drains first, so the job that took the memory has succeeded."""
    command = shop.start(FAIRLANE_WORKER__MAX_MEMORY="150MB", FAIRLANE_WORKER__RENEW_EVERY="0.2s")
    (pid,) = command.serving(1)
    job = shop.big.enqueue()
    (reached,) = command.until("worker_max_memory_reached")
    assert reached["resident"] > 150 * 2**20
    assert command.serving(2)[-1] != pid
    wait_for(lambda: pid not in command.pids())
    assert job.refresh().state is State.SUCCEEDED
    assert not command.events("process_killed")


def test_an_application_that_crashes_at_its_start_is_a_crash_loop(shop: Shop) -> None:
    """Nothing of it ever worked: the command says so once and ends, for who started it to see."""
    shop.write("import os\nos._exit(9)\n")
    command = shop.start("--processes", "3")
    assert command.end() == 70
    ended = command.events("process_ended")
    assert [one["pause_s"] for one in ended] == [0.1, 0.2, 0.4, 0.8, 1.6]
    assert {one["code"] for one in ended} == {9}
    (loop,) = command.events("crash_loop")
    assert "the last one ended with exit code 9" in loop["message"]
    assert len(command.events("supervisor_gave_up")) == 1


def test_a_later_crash_loop_goes_on_with_the_other_processes(shop: Shop) -> None:
    """Once a process has been ready, the command never gives up."""
    command = shop.start("--processes", "2")
    first, second = command.serving(2)
    shop.write("import os\nos._exit(9)\n")
    os.kill(first, signal.SIGKILL)
    command.until("crash_loop")
    assert second in command.pids()
    shop.write(APPLICATION)
    command.serving(3)
    job = shop.nap.enqueue(0.0)
    wait_for(lambda: job.refresh().state is State.SUCCEEDED)


def test_a_mistake_in_the_application_is_said_once_and_final(shop: Shop) -> None:
    """Three processes are asked for, one is tried: exit code 5, no restart."""
    shop.write("raise RuntimeError('not today')\n")
    command = shop.start("--processes", "3")
    assert command.end() == 5
    assert sum(line.startswith("Error: ") for line in command.lines) == 1
    assert len(command.events("process_started")) == 1


def test_a_half_done_deployment_does_not_end_what_works(shop: Shop) -> None:
    """A mistake that comes later is tried again after the longest pause."""
    command = shop.start("--processes", "2")
    first, second = command.serving(2)
    shop.write("raise RuntimeError('not today')\n")
    os.kill(first, signal.SIGKILL)
    _, refused = command.until("process_ended", 2)
    assert (refused["code"], refused["pause_s"]) == (5, 30.0)
    assert second in command.pids()


def test_a_store_that_is_gone_ends_the_command(shop: Shop) -> None:
    """A new process would create an empty file in its place."""
    command = shop.start()
    command.serving(1)
    job = shop.nap.enqueue(0.0)
    wait_for(lambda: job.refresh().state is State.SUCCEEDED)
    for path in shop.folder.glob("shop.db*"):
        if path.is_file():
            path.unlink()
    assert command.end() == 4
    assert "it is not started again" in command.events("process_ended")[0]["message"]
