"""How handlers in children are stopped: soft timeouts, cancels, hard timeouts, shutdown, a lost worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairlane.model.instants import SECOND
from tests.worker.children import jobs
from tests.worker.children.conftest import ROOT, Place, is_alive, is_guardian, until


@pytest.mark.parametrize("task", [jobs.softly, jobs.asoftly], ids=["plain", "async"])
async def test_a_soft_timeout_is_raised_in_the_handler(place: Place, task: jobs.AnyTask) -> None:
    """S31: also in a plain handler, which a signal interrupts."""
    async with place.working():
        assert await place.result(task.bind()) == "softly"


@pytest.mark.parametrize("task", [jobs.wait_for_cancel, jobs.await_cancel], ids=["plain", "async"])
async def test_a_cancel_is_raised_in_the_handler(place: Place, task: jobs.AnyTask) -> None:
    """S30: its clean-up runs, and its process goes on."""
    async with place.working(children=1):
        (job,) = await place.enqueue(task.bind(place.file))
        ((pid,),) = await place.noted()
        await job.acancel("enough")
        job = await place.reaches(job, "cancelled")
        assert place.notes()[1] == ["left"]
        assert (await place.result(jobs.where.bind()))[0] == int(pid)


async def test_a_handler_that_returns_although_it_was_cancelled_has_succeeded(place: Place) -> None:
    """S30; and `ctx.cancelled` says so."""
    async with place.working():
        (job,) = await place.enqueue(jobs.finish_anyway.bind(place.file))
        await place.noted()
        await job.acancel("enough")
        assert await (await place.reaches(job, "succeeded")).aresult() is True


async def test_a_job_that_waits_for_a_child_can_be_cancelled(place: Place) -> None:
    """It has a slot, and its handler has not begun."""
    async with place.working(children=1):
        await place.enqueue(jobs.wait_for_cancel.bind(place.file))
        await place.noted()
        (waiting,) = await place.enqueue(jobs.add.bind(1, 2))
        await place.reaches(waiting, "running")
        await waiting.acancel("enough")
        await place.reaches(waiting, "cancelled")


async def test_a_handler_past_its_timeout_fails_as_timeout(place: Place) -> None:
    """One that can be interrupted ends at once, and its process goes on."""
    async with place.working(children=1):
        pid = (await place.result(jobs.where.bind()))[0]
        (job,) = await place.run(jobs.overrun.bind())
        assert (job.state.value, job.attempts[0].error_class) == ("dead", "timeout")
        assert (await place.result(jobs.where.bind()))[0] == pid


async def test_past_its_timeout_the_whole_process_group_is_killed(place: Place) -> None:
    """S31: TERM first, then KILL, also of what the handler has started."""
    async with place.working(children=1):
        (job,) = await place.enqueue(jobs.hang_with_process.bind(place.file))
        ((pid, inner),) = await place.noted()
        job = await place.reaches(job, "delayed")
        assert job.attempts[0].error_class == "timeout"
        await until(lambda: not is_alive(int(pid)) and not is_alive(int(inner)))
        assert await place.result(jobs.add.bind(1, 2)) == 3


async def test_a_job_in_a_child_is_requeued_at_shutdown_if_its_task_says_so(place: Place) -> None:
    """S32, as any other handler."""
    async with place.working():
        (job,) = await place.enqueue(jobs.requeued.bind(place.file))
        await place.noted()
    job = await job.arefresh()
    assert (job.state.value, job.failures) == ("ready", 0)


# ── a worker that is gone ────────────────────────────────────────────────────


@contextmanager
def worker_process(place: Place, lease: float = 3) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker as a process of its own, without a supervisor above it."""
    url = f"sqlite:////{place.folder}/fairlane.db"
    surroundings = {
        "FAIRLANE_WORKER__LEASE": str(lease),
        "FAIRLANE_WORKER__RENEW_EVERY": str(lease / 6),
        "FAIRLANE_WORKER__PROCESSES": "0",
    }
    with (place.folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 (our own program)
            [sys.executable, "-m", "fairlane", "--url", url, "worker", "tests.worker.children.jobs:app"],
            cwd=ROOT,
            env={**os.environ, **surroundings},
            stderr=log,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
async def test_a_child_does_not_outlive_the_lease_of_its_worker(place: Place, number: signal.Signals) -> None:
    """Also while its handler holds the interpreter, so that no code of ours runs in it."""
    (job,) = await place.enqueue(jobs.spin.bind(place.file))
    with worker_process(place) as worker:
        ((pid,),) = await place.noted()
        assert is_alive(int(pid))
        worker.send_signal(number)
        lease_until = (await place.record(job)).lease_until
        await until(lambda: not is_alive(int(pid)))
        now = await place.store_now()
        assert lease_until is not None
        assert now < lease_until, (now - lease_until) / SECOND


async def test_a_guardian_that_dies_is_replaced(place: Place) -> None:
    """The next one knows the children of the first."""
    (job,) = await place.enqueue(jobs.spin.bind(place.file))
    assert job.state.value == "ready"
    with worker_process(place) as worker:
        ((pid,),) = await place.noted()
        guardian = _guardian_of(worker.pid)
        assert guardian > 0  # 0 would be the process group of the tests themselves
        os.kill(guardian, signal.SIGKILL)
        await until(lambda: _guardian_of(worker.pid) not in {0, guardian})
        worker.kill()
        await until(lambda: not is_alive(int(pid)))


def _guardian_of(worker: int) -> int:
    for child in _children_of(worker):
        if is_guardian(child) and is_alive(child):
            return child
    return 0


def _children_of(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)  # noqa: S603, S607 (a test)
    return [int(line) for line in found.stdout.split()]


def is_signal_pending(pid: int) -> bool:
    """Whether a signal was sent to a process that it has not received yet."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    pending = [line.split()[1] for line in lines if line.startswith(("SigPnd:", "ShdPnd:"))]
    return any(int(mask, 16) for mask in pending)


async def test_stopping_a_worker_process_ends_its_children(place: Place) -> None:
    """SIGTERM twice: no orphan is left."""
    await place.enqueue(jobs.wait_for_cancel.bind(place.file))
    with worker_process(place) as worker:
        ((pid,),) = await place.noted()
        worker.terminate()
        await until(lambda: not is_signal_pending(worker.pid))  # two that are pending would be one
        worker.terminate()
        await until(lambda: worker.poll() is not None)
        assert not is_alive(int(pid))
