"""Real worker processes, looked into by a signal and through the store, and replaced when they are stuck."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from fairlane import State, WorkerSilent
from tests.processes.conftest import Process, Site, wait_for
from tests.stopped import stop_between_writes


def dumps(worker: Process) -> list[dict[str, Any]]:
    """Return the dumps that a worker has logged."""
    return [one for one in worker.events() if one.get("event") == "worker_dump"]


def id_of(worker: Process) -> str:
    """Return the id of a worker."""
    worker.until("worker_started")
    return str(next(one for one in worker.events() if one.get("event") == "worker_started")["worker"])


def test_sigusr1_writes_the_stacks_of_all_threads_and_tasks(site: Site) -> None:
    """001-DG-7: with tenant and job; the worker works on, and can be asked again."""
    worker = site.start()
    asynchronous = site.enqueue("short", 600.0, tenant="acme")
    plain = site.enqueue("plain", 600.0, tenant="globex")
    wait_for(lambda: len(worker.starts()) == 2)
    for number in (1, 2):
        worker.signal(signal.SIGUSR1)
        wait_for(lambda number=number: len(dumps(worker)) == number)  # type: ignore[misc]
    text = dumps(worker)[1]["stacks"]
    assert f"task of the worker's loop, tenant acme, job {asynchronous.id}, task short, attempt 1" in text
    assert f"tenant globex, job {plain.id}, task plain, attempt 1" in text
    assert "in short" in text
    assert "in plain" in text
    assert "thread MainThread" in text
    assert "thread fairlane-portal" in text
    worker.signal(signal.SIGTERM)
    worker.until("worker_stopping")
    assert len(dumps(worker)) == 2, "one signal wrote more than one dump"


def test_sigusr1_is_heard_while_a_handler_blocks_the_loop(site: Site) -> None:
    """S31: and so is a question through the store, which says that the loop is blocked."""
    worker = site.start()
    job = site.enqueue("forever")
    wait_for(lambda: len(worker.starts()) == 1)
    worker.signal(signal.SIGUSR1)
    wait_for(lambda: bool(dumps(worker)))
    assert "in forever" in dumps(worker)[0]["stacks"]
    status = site.app.workers.status(id_of(worker), at_most=60)
    assert status.loop_lag is None
    assert [slot.job for slot in status.slots] == [str(job.id)]
    assert "in forever" in site.app.workers.dump(id_of(worker), at_most=60)


def test_a_stalled_worker_writes_all_stacks_hands_back_and_is_replaced(site: Site) -> None:
    """001-FM-9, S31: a handler without timeout blocks the loop, and a job waits."""
    worker = site.start(stalled_after=1, lease=3, slots=2)
    innocent = site.enqueue("endless")
    wait_for(lambda: len(worker.starts()) == 1)
    guilty = site.enqueue("forever", tenant="globex")
    wait_for(lambda: len(worker.starts()) == 2)
    waiting = site.enqueue("once")
    assert worker.end() == 75
    names = [one["event"] for one in worker.events() if one["event"] in {"worker_stalled", "worker_dump"}]
    assert names == ["worker_stalled", "worker_dump"]
    assert f"job {guilty.id}, task forever" in dumps(worker)[0]["stacks"]
    back = innocent.refresh()
    assert (back.state, back.failures) == (State.READY, 0)
    assert guilty.refresh().state is State.RUNNING
    assert waiting.refresh().state is State.READY


def test_too_many_abandoned_handlers_replace_the_worker(site: Site) -> None:
    """S31: past `max_abandoned` it drains and ends with 75; the others finish."""
    worker = site.start(max_abandoned=1)
    working = site.enqueue("short", 4.0)
    for _ in range(2):
        site.enqueue("ignores")
    assert worker.end() == 75
    assert any(one["event"] == "worker_too_many_abandoned" for one in worker.events())
    assert working.refresh().state is State.SUCCEEDED


@pytest.mark.parametrize(
    ("sigint", "expected"), [("graceful", State.SUCCEEDED), ("immediate", State.DELAYED)]
)
def test_sigint_does_what_its_setting_says(site: Site, sigint: str, expected: State) -> None:
    """`graceful` lets a running job finish; `immediate` stops it with the first Ctrl-C."""
    worker = site.start(sigint=sigint, shutdown_deadline=3600)
    job = site.enqueue("short", 3.0)
    wait_for(lambda: len(worker.starts()) == 1)
    worker.signal(signal.SIGINT)
    assert worker.end() == 0
    found = job.refresh()
    if sigint == "graceful":
        assert found.state is expected
    else:
        assert found.state in {State.DELAYED, State.READY}
        assert found.failures == 1


def test_a_worker_that_is_told_to_stop_through_the_store_drains_and_ends(site: Site) -> None:
    """S70: with exit code 0, as after SIGTERM."""
    worker = site.start()
    job = site.enqueue("short", 1.0)
    wait_for(lambda: len(worker.starts()) == 1)
    site.app.workers.stop(id_of(worker), at_most=60)
    assert worker.end() == 0
    assert job.refresh().state is State.SUCCEEDED


def test_a_frozen_worker_does_not_answer(site: Site) -> None:
    """S70: whoever asks hears why, and the question has no effect later."""
    worker = site.start(lease=60, renew_every=1)
    id = id_of(worker)
    stop_between_writes(worker.popen.pid, site.file)
    with pytest.raises(WorkerSilent, match=f"worker {id} did not answer within 1 s"):
        site.app.workers.stop(id, at_most=1)
    worker.signal(signal.SIGCONT)
    assert site.app.workers.status(id, at_most=60).state == "idle"
