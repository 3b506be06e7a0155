"""Stopping: the first signal lets jobs end, the second does not wait, and nobody outlives a supervisor."""

from __future__ import annotations

import os
import signal
import time

import pytest

from fairlane import State
from tests.supervisor.conftest import Shop, wait_for


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_running_jobs_end(shop: Shop, number: signal.Signals) -> None:
    """In all processes; the exit code is 0."""
    command = shop.start("--processes", "2", SHOP_SLOTS="2")
    command.serving(2)
    jobs = [shop.nap.enqueue(1.5) for _ in range(2)]
    wait_for(lambda: len(shop.notes()) == 2)
    assert len({pid for _, pid in shop.notes()}) == 2
    waiting = shop.nap.enqueue(0.0)
    command.signal(number)
    assert command.end() == 0
    assert {job.refresh().state for job in jobs} == {State.SUCCEEDED}
    assert waiting.refresh().state is State.READY
    assert not command.pids()


def test_a_signal_that_reaches_all_processes_is_still_graceful(shop: Shop) -> None:
    """As systemd sends it to a whole control group: whichever comes first, it counts once."""
    command = shop.start()
    (pid,) = command.serving(1)
    job = shop.nap.enqueue(1.5)
    wait_for(lambda: len(shop.notes()) == 1)
    command.signal(signal.SIGTERM)
    for _ in range(3):
        os.kill(pid, signal.SIGTERM)
    assert command.end() == 0
    assert job.refresh().state is State.SUCCEEDED


def test_a_second_signal_stops_jobs_at_once(shop: Shop) -> None:
    """A job of ten minutes does not keep the command."""
    command = shop.start("--processes", "2")
    command.serving(2)
    job = shop.nap.enqueue(600.0)
    wait_for(lambda: len(shop.notes()) == 1)
    command.signal(signal.SIGTERM)
    command.until("worker_stopping", 2)
    began = time.monotonic()
    command.signal(signal.SIGTERM)
    assert command.end() == 0
    assert time.monotonic() - began < 25, "it waited for the shutdown deadline"
    assert job.refresh().state is not State.SUCCEEDED


def test_a_process_that_hears_nothing_is_killed_after_its_deadline(shop: Shop) -> None:
    """Its handler holds the interpreter; the exit code tells."""
    command = shop.start(FAIRLANE_WORKER__SHUTDOWN_DEADLINE="1s")
    command.serving(1)
    shop.deaf.enqueue()
    wait_for(lambda: len(shop.notes()) == 1)
    command.signal(signal.SIGTERM)
    command.until("supervisor_stopping")
    command.signal(signal.SIGTERM)
    assert command.end() == 70
    assert len(command.events("process_killed")) == 1
    assert not command.pids()


def test_processes_drain_and_end_when_their_supervisor_is_killed(shop: Shop) -> None:
    """SIGKILL of the supervisor alone: running jobs end, nothing more is claimed."""
    command = shop.start("--processes", "2", SHOP_SLOTS="2")
    command.serving(2)
    jobs = [shop.nap.enqueue(2.0) for _ in range(2)]
    wait_for(lambda: len(shop.notes()) == 2)
    command.signal(signal.SIGKILL)
    assert command.popen.wait() == -9
    wait_for(lambda: len(command.events("worker_stopping")) == 2, seconds=20)
    waiting = shop.nap.enqueue(0.0)
    wait_for(lambda: not command.pids())
    assert {job.refresh().state for job in jobs} == {State.SUCCEEDED}
    assert waiting.refresh().state is State.READY


def test_a_process_that_an_operator_ends_is_replaced(shop: Shop) -> None:
    """SIGTERM to one worker process is no order to the command."""
    command = shop.start()
    (pid,) = command.serving(1)
    os.kill(pid, signal.SIGTERM)
    assert command.serving(2)[-1] != pid
    (ended,) = command.events("process_ended")
    assert (ended["code"], ended["pause_s"], ended["level"]) == (0, 0, "info")


def test_a_hangup_of_one_process_changes_nothing(shop: Shop) -> None:
    """SIGHUP is meant for the supervisor; `pkill` may send it to all."""
    command = shop.start()
    (pid,) = command.serving(1)
    os.kill(pid, signal.SIGHUP)
    job = shop.nap.enqueue(0.0)
    wait_for(lambda: job.refresh().state is State.SUCCEEDED)
    assert command.pids() == {pid}
    assert not command.events("process_ended")


def test_bursts_end_the_command_when_all_have_ended(shop: Shop) -> None:
    """Exit code 0, and nothing is left."""
    jobs = [shop.nap.enqueue(0.0) for _ in range(20)]
    command = shop.start("--burst", "--processes", "2")
    assert command.end() == 0
    assert {job.refresh().state for job in jobs} == {State.SUCCEEDED}
    assert len(command.events("process_started")) == 2


def test_slots_are_divided_among_the_processes(shop: Shop) -> None:
    """S47: five slots, three processes; together they have five."""
    command = shop.start("--processes", "3", SHOP_SLOTS="5")
    command.serving(3)
    assert sorted(one["slots"] for one in command.events("worker_started")) == [1, 2, 2]
    jobs = [shop.nap.enqueue(600.0) for _ in range(8)]
    wait_for(lambda: len(shop.notes()) == 5)
    counts = shop.app.jobs.count()
    assert (counts[State.RUNNING], counts[State.READY]) == (5, len(jobs) - 5)
    command.signal(signal.SIGTERM)
    command.until("supervisor_stopping")
    command.signal(signal.SIGTERM)
    command.end()


def test_more_processes_than_slots_is_one_clear_error(shop: Shop) -> None:
    """Before anything is claimed: exit code 5."""
    command = shop.start("--processes", "5")
    assert command.end() == 5
    (error,) = [line for line in command.lines if line.startswith("Error: ")]
    assert error.startswith("Error: worker.processes: lane main has 4 slots, and 5 processes share them")


def test_a_number_of_processes_in_code_is_refused_not_ignored(shop: Shop) -> None:
    """The supervisor does not import the application, so it cannot know it."""
    shop.write("from fairlane import Fairlane\napp = Fairlane(config={'worker': {'processes': 2}})\n")
    command = shop.start()
    assert command.end() == 5
    (error,) = [line for line in command.lines if line.startswith("Error: ")]
    assert "worker.processes" in error
    assert "--processes" in error


def test_the_number_of_processes_comes_from_option_environment_or_file(shop: Shop) -> None:
    """The option wins, then the variable."""
    (shop.folder / "fairlane.toml").write_text("[worker]\nprocesses = 2\n", encoding="utf-8")
    by_file = shop.start("--burst")
    by_variable = shop.start("--burst", FAIRLANE_WORKER__PROCESSES="3")
    by_option = shop.start("--burst", "--processes", "1", FAIRLANE_WORKER__PROCESSES="3")
    assert [one.end() for one in (by_file, by_variable, by_option)] == [0, 0, 0]
    numbers = [one.events("process_started")[0]["processes"] for one in (by_file, by_variable, by_option)]
    assert numbers == [2, 3, 1]
    (shop.folder / "fairlane.toml").write_text("[worker]\nprocesses = -1\n", encoding="utf-8")
    wrong = shop.start("--burst")
    assert wrong.end() == 5
    assert "fairlane.toml:2" in wrong.lines[0]


def test_sigusr1_lets_every_worker_process_log_its_stacks(shop: Shop) -> None:
    """S70: the supervisor passes it on and lives, also while a process starts; no job is harmed."""
    command = shop.start("--processes", "2")
    command.until("process_started")
    command.signal(signal.SIGUSR1)  # to nobody: a process that starts would die of it
    command.serving(2)
    job = shop.nap.enqueue(600.0)
    wait_for(lambda: len(shop.notes()) == 1)
    command.signal(signal.SIGUSR1)
    dumps = command.until("worker_dump", 2)
    assert len({one["worker"] for one in dumps}) == 2
    assert [f"job {job.id}, task nap" in one["stacks"] for one in dumps].count(True) == 1
    assert len(command.pids()) == 2
    assert not command.events("process_ended")
    assert job.refresh().attempt == 1
