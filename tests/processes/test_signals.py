"""Real worker processes and real signals: they stop in order, at once, not at all, and nothing is lost."""

from __future__ import annotations

import os
import signal
import time

import pytest

from fairlane import State
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import WorkersRequest
from tests.processes.conftest import Site, wait_for
from tests.stopped import stop_between_writes

SOON = 20.0
"""What a slow machine needs to end a process, and less than anything that a worker waits for by itself."""


def test_sigterm_ends_an_idle_worker_at_once(site: Site) -> None:
    """With exit code 0, and off the list; row 001-WK-9 counts the second."""
    worker = site.start()
    worker.until("worker_started")
    told_at = time.monotonic()
    worker.signal(signal.SIGTERM)
    assert worker.end() == 0
    assert time.monotonic() - told_at < SOON
    assert worker.events()[-1]["event"] == "worker_left"
    workers = site.app.client.portal.run(_workers(site))
    assert workers == ()


async def _workers(site: Site) -> object:
    return await site.app.client.store.registry.workers(WorkersRequest(scope=Scope.all()))


def test_sigterm_lets_a_running_job_finish(site: Site) -> None:
    """The worker ends when it has."""
    worker = site.start()
    job = site.enqueue("short", 1.0)
    wait_for(lambda: len(worker.starts()) == 1)
    worker.signal(signal.SIGTERM)
    assert worker.end() == 0
    assert job.refresh().state is State.SUCCEEDED


def test_at_the_deadline_a_job_that_may_goes_back(site: Site) -> None:
    """It is ready for another worker, with no failure counted."""
    worker = site.start(shutdown_deadline=0.5)
    job = site.enqueue("endless")
    wait_for(lambda: len(worker.starts()) == 1)
    worker.signal(signal.SIGINT)
    assert worker.end() == 0
    back = job.refresh()
    assert (back.state, back.failures) == (State.READY, 0)


def test_a_second_sigterm_ends_the_worker_at_once(site: Site) -> None:
    """It waits for no deadline, and what ran is handed back."""
    worker = site.start(shutdown_deadline=3600)
    job = site.enqueue("endless")
    wait_for(lambda: len(worker.starts()) == 1)
    worker.signal(signal.SIGTERM)
    worker.until("worker_stopping")
    told_at = time.monotonic()
    worker.signal(signal.SIGTERM)
    assert worker.end() == 0
    assert time.monotonic() - told_at < SOON
    assert job.refresh().state is State.READY


def test_a_worker_ends_although_a_handler_will_not(site: Site) -> None:
    """An async handler that swallows every cancellation cannot keep the process."""
    worker = site.start()
    job = site.enqueue("deaf")
    wait_for(lambda: len(worker.starts()) == 1)
    worker.signal(signal.SIGTERM)
    worker.until("worker_stopping")
    worker.signal(signal.SIGTERM)
    assert worker.end() == 0
    assert job.refresh().state is State.DEAD


def test_a_worker_whose_loop_stands_still_exits_with_70(site: Site) -> None:
    """S31: ten seconds after the hard limit. What it had claimed and not begun goes back untouched (S32)."""
    worker = site.start(lease=4)
    site.enqueue("blocking")
    wait_for(lambda: len(worker.starts()) == 1)
    assert worker.end() == 70
    blocked, dumped = worker.events()[-2:]
    assert (blocked["event"], dumped["event"]) == ("event_loop_blocked", "worker_dump")
    assert "in block\n" in dumped["stacks"]
    (waiting,) = site.app.jobs.find(task="once").items
    assert (waiting.state, waiting.attempt, waiting.failures) == (State.READY, 0, 0)


def test_a_claim_that_arrives_while_a_handler_blocks_the_loop_is_kept(site: Site) -> None:
    """Its lease is renewed for longer than it lasts, and the job, which may run only once, runs."""
    scheduler = site.start("scheduler")
    scheduler.until("lead_taken")
    worker = site.start("idler", lease=1, renew_every=0.2)
    blocking = site.enqueue("stalling", 5.0)
    wait_for(lambda: blocking.refresh().is_finished and site.app.jobs.find(task="once").items[0].is_finished)
    (waited,) = site.app.jobs.find(task="once").items
    assert (waited.state, waited.attempt) == (State.SUCCEEDED, 1)
    (stalled, ran) = worker.starts()
    assert ran.at - stalled.at > 4 * SECOND, "it was begun before the loop was blocked"
    assert not any(one.get("event") == "job_lost" for one in scheduler.events())


def test_the_jobs_of_a_killed_worker_run_elsewhere(site: Site) -> None:
    """SIGKILL: nobody renews, the lease runs out, another worker reclaims and runs them."""
    first = site.start()
    jobs = [site.enqueue("short", 600.0) for _ in range(2)]
    wait_for(lambda: len(first.starts()) == 2)
    second = site.start()
    second.until("worker_started")
    first.signal(signal.SIGKILL)
    assert first.end() == -signal.SIGKILL
    wait_for(lambda: len(second.starts()) == 2)
    assert {one.attempt for one in second.starts()} == {2}
    for job in jobs:
        assert [attempt.outcome for attempt in job.refresh().attempts] == ["lost", "running"]
    assert second.until("job_lost")["tenant"] == "acme"


def test_a_paused_worker_s_late_settlement_is_refused(site: Site) -> None:
    """SIGSTOP beyond the lease, another worker runs the job, SIGCONT: the old fence is too small."""
    first = site.start(lease=2, renew_every=0.5)
    job = site.enqueue("plain", 4.0)
    wait_for(lambda: len(first.starts()) == 1)
    stop_between_writes(
        first.popen.pid, site.file
    )  # before anything else takes time: the handler must not be done yet
    second = site.start(lease=2, renew_every=0.5)
    wait_for(lambda: len(second.starts()) == 1)
    first.signal(signal.SIGCONT)
    # Its handler is told to stop, or was done by then; its settlement is too late either way.
    wait_for(lambda: bool({"handler_stopped", "settlement_stale"} & {one["event"] for one in first.events()}))
    wait_for(lambda: job.refresh().is_finished)
    done = job.refresh()
    assert (done.state, done.attempt) == (State.SUCCEEDED, 2)
    assert [attempt.outcome for attempt in done.attempts] == ["lost", "succeeded"]
    first.signal(signal.SIGTERM)
    assert first.end() == 0
    assert [one for one in first.seen() if type(one).__name__ == "Settled"] == []


def test_a_handler_that_forks_keeps_its_job(site: Site) -> None:
    """The child leaves by its own way; the worker goes on, and plain calls still work."""
    worker = site.start()
    job = site.enqueue("forks")
    wait_for(lambda: job.refresh().is_finished)
    assert job.refresh().result() == "child left with 7"
    wait_for(lambda: len(worker.starts()) == 2)
    worker.signal(signal.SIGTERM)
    assert worker.end() == 0


@pytest.mark.parametrize("task", ["comes_back", "comes_back_async"])
def test_a_forked_child_that_comes_back_from_its_handler_ends_there(site: Site, task: str) -> None:
    """It settles nothing, stays nowhere, and leaves its parent able to hear signals."""
    worker = site.start()
    job = site.enqueue(task)
    wait_for(lambda: job.refresh().is_finished)
    assert job.refresh().result(0) == "child left with 0"
    worker.signal(signal.SIGTERM)
    assert worker.end() == 0


def test_a_burst_ends_by_itself(site: Site) -> None:
    """With exit code 0, and everything done."""
    jobs = [site.enqueue("short", 0.0) for _ in range(50)]
    assert site.start("burst").end() == 0
    assert {job.refresh().state for job in jobs} == {State.SUCCEEDED}


def test_a_scheduler_does_the_duties_for_workers_that_do_none(site: Site) -> None:
    """It reclaims what a killed worker held, runs nothing, and ends on SIGTERM."""
    scheduler = site.start("scheduler")
    scheduler.until("lead_taken")
    first, second = site.start("idler"), site.start("idler")
    second.until("worker_started")
    first.until("worker_started")
    site.enqueue("short", 600.0)
    wait_for(lambda: len(first.starts()) + len(second.starts()) == 1)
    busy, other = (first, second) if first.starts() else (second, first)
    busy.signal(signal.SIGKILL)
    busy.end()
    wait_for(lambda: len(other.starts()) == 1)
    assert scheduler.starts() == []
    scheduler.until("job_lost")
    assert not any(one.get("event") == "lead_taken" for one in other.events())
    scheduler.signal(signal.SIGTERM)
    assert scheduler.end() == 0


@pytest.mark.parametrize("role", ["worker", "scheduler"])
def test_a_process_whose_file_was_deleted_ends_with_4(site: Site, role: str) -> None:
    """It says so once, in one line, and waits for nothing: not even for a handler that runs."""
    process = site.start(role)
    process.until("lead_taken")
    if role == "worker":
        site.enqueue("endless")
        wait_for(lambda: len(process.starts()) == 1)
    site.file.unlink()
    assert process.end() == 4
    told = [one for one in process.events() if one["level"] in {"warning", "error", "critical"}]
    # A scheduler alone reports that no worker is live, if it looked before the file went.
    others = {"handler_stopped", "task_without_timeout", "finding"}
    gone = [one for one in told if one["event"] not in others]
    assert [one["event"] for one in gone] == ["store_gone"]
    assert "was deleted or replaced while it was open" in gone[0]["message"]


def test_workers_leave_no_sockets_behind(site: Site) -> None:
    """The folder of wake-ups is empty, or gone, when the last one has left."""
    worker = site.start()
    worker.until("worker_started")
    worker.signal(signal.SIGTERM)
    assert worker.end() == 0
    folder = f"{site.file}.wake"
    assert not os.path.isdir(folder) or os.listdir(folder) == []  # noqa: PTH112, PTH208 (short)
