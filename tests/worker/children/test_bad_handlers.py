"""Whatever a handler does to its process: a clear end of its attempt, a healthy worker, a fit next job."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from tests.worker.children import jobs
from tests.worker.children.conftest import Place, is_alive, until


async def _is_healthy(place: Place) -> None:
    assert await place.result(jobs.add.bind(1, 2), tenant="neighbour") == 3


async def test_a_handler_that_ends_its_process_crashes_alone_and_is_dead_at_the_third_time(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """S40: three crashes of its own; the worker and its neighbours go on."""
    async with place.working():
        (job,) = await place.enqueue(jobs.exit_now.bind())
        await _is_healthy(place)
        while (job := await place.reaches(job, "delayed")).failures < 2:
            with place.app.as_system(reason="a test"):
                await place.app.jobs.arun_now(job.id)
            await _is_healthy(place)
        with place.app.as_system(reason="a test"):
            await place.app.jobs.arun_now(job.id)
        job = await place.reaches(job, "dead")
    assert [one.error_class for one in job.attempts] == ["crash"] * 3
    assert job.attempts[0].message == "the process of the handler ended: exit code 7"
    assert any(getattr(record, "event", "") == "child_died" for record in caplog.records)


async def test_a_child_that_dies_in_a_task_that_runs_at_most_once_leaves_it_dead(place: Place) -> None:
    """S63: nobody knows how far it got."""
    async with place.working():
        (job,) = await place.run(jobs.exit_once.bind())
        assert (job.state.value, job.attempts[0].error_class) == ("dead", "crash")


CRASHES: dict[str, tuple[jobs.AnyTask, str]] = {
    "segfault": (jobs.segfault, "killed by SIGSEGV"),
    "closed descriptors": (jobs.close_all, "did the handler close descriptors?"),
    "garbage on the connection": (jobs.write_garbage, "killed by SIGKILL"),
}


@pytest.mark.parametrize("name", CRASHES)
async def test_a_process_that_dies_says_how(place: Place, name: str) -> None:
    """The signal or the exit code is in the attempt, and the next job has another child."""
    task, how = CRASHES[name]
    async with place.working(children=1):
        (job,) = await place.enqueue(task.bind())
        job = await place.reaches(job, "delayed")
        assert job.attempts[0].error_class == "crash"
        assert how in (job.attempts[0].message or "")
        await _is_healthy(place)


FAILURES: dict[str, tuple[jobs.AnyTask, str]] = {
    "endless recursion": (jobs.recurse, "RecursionError"),
    "exit of the interpreter": (jobs.system_exit, "SystemExit"),
    "too much memory": (jobs.exhaust_memory, "MemoryError"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_what_can_be_raised_is_an_ordinary_failure(place: Place, name: str) -> None:
    """The process survives, and so does what it was doing for others."""
    task, error_type = FAILURES[name]
    async with place.working(children=1):
        (job,) = await place.run(task.bind())
        assert (job.state.value, job.attempts[0].error_type) == ("dead", error_type)
        await _is_healthy(place)


async def test_a_handler_that_exhausts_its_descriptors_fails(place: Place) -> None:
    """`OSError`; what it could not close goes with the error, or with the process."""
    async with place.working(children=1):
        (job,) = await place.enqueue(jobs.exhaust_descriptors.bind())
        job = await place.reaches(job, "delayed")
        assert job.attempts[0].error_type == "OSError"
        await _is_healthy(place)


LEFTOVERS = {
    "signal handlers": (jobs.set_signals.bind(), "it has set signal handlers"),
    "closed output": (jobs.close_output.bind(), "standard input or output"),
    "a thread": (jobs.leave_thread.bind(), "thread left"),
    "a process": (jobs.leave_process.bind(detached=False), "left a process"),
    "a detached process": (jobs.leave_process.bind(detached=True), "left a process"),
}


@pytest.mark.parametrize("name", LEFTOVERS)
async def test_what_cannot_be_undone_replaces_the_child(
    place: Place, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The job has succeeded; the next one runs in a fresh process, and nothing is left of the old one."""
    call, why = LEFTOVERS[name]
    async with place.working(children=1):
        found = await place.result(call)
        pids = [found] if isinstance(found, int) else list(found)
        assert (await place.result(jobs.where.bind()))[0] not in pids
        await until(lambda: not any(is_alive(pid) for pid in pids))
    assert any(why in record.getMessage() for record in caplog.records), caplog.text


async def test_what_can_be_undone_is_undone(place: Place) -> None:
    """The working directory and a pending alarm; the child goes on."""
    async with place.working(children=1):
        first = await place.result(jobs.change_directory.bind(str(place.folder)))
        assert await place.result(jobs.where.bind()) == (first, str(Path.cwd()))
        assert await place.result(jobs.set_alarm.bind()) == first
        assert await place.result(jobs.linger.bind(0.2)) == first


async def test_a_fork_that_returns_into_our_code_ends_there(place: Place) -> None:
    """One result comes back, of the process that the worker has started."""
    async with place.working(children=1):
        first = (await place.result(jobs.whoami.bind()))["pid"]
        assert await place.result(jobs.fork_and_return.bind()) == first
        await _is_healthy(place)


async def test_output_is_logged_with_tenant_and_job(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """Line by line, in the order written."""
    caplog.set_level(logging.INFO, "fairlane.output")
    async with place.working():
        (job,) = await place.run(jobs.speak.bind(), tenant="acme")
        records = [one for one in caplog.records if one.name == "fairlane.output"]
        assert [one.getMessage().partition(": ")[2] for one in records] == ["line 0", "line 1", "an error"]
        assert {(one.tenant, one.job) for one in records} == {("acme", str(job.id))}  # type: ignore[attr-defined]


async def test_much_output_is_bounded(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """64 KB of it are logged, and how much was dropped; the job succeeds."""
    caplog.set_level(logging.INFO, "fairlane.output")
    async with place.working():
        (job,) = await place.run(jobs.flood.bind(200))
        assert job.state.value == "succeeded"
        records = [one.getMessage() for one in caplog.records if one.name == "fairlane.output"]
        assert sum(len(one) for one in records) < 200_000
        assert "more bytes of output were dropped" in records[-1]


async def test_a_process_that_takes_too_much_memory_is_killed(place: Place) -> None:
    """`max_memory`, of the process and of what it starts: a failure that names limit and use."""
    async with place.working():
        own, below = await place.run(jobs.eat_memory.bind(200, place.file), jobs.eat_memory_below.bind(300))
        for job, limit in ((own, "120 MB"), (below, "200 MB")):
            attempt = job.attempts[0]
            assert (attempt.error_class, attempt.error_type) == ("retryable", "fairlane.MaxMemoryExceeded")
            assert f"more than max_memory, {limit}" in (attempt.message or "")
        assert await place.result(jobs.eat_memory.bind(1)) == 2**20
        ((pid,),) = place.notes()
        await until(lambda: not is_alive(int(pid)))


async def test_an_application_that_a_child_cannot_import_fails_the_attempt(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With the traceback; the worker lives, and works again when the import does."""
    monkeypatch.setenv("TEST_IMPORT_FAILS", "no such module")
    async with place.working():
        (job,) = await place.enqueue(jobs.add.bind(1, 2))
        failed = await place.reaches(job, "delayed")
        assert (failed.attempts[0].error_class, failed.attempts[0].message) == ("retryable", "no such module")
        assert "jobs.py" in (failed.attempts[0].traceback or "")
        assert await place.result(jobs.add_here.bind(1, 2)) == 3
        monkeypatch.delenv("TEST_IMPORT_FAILS")
        assert (await place.app.client.afinished(job, None)).state.value == "succeeded"
    assert any(getattr(one, "event", "") == "child_not_started" for one in caplog.records)


async def test_an_interpreter_that_is_gone_fails_the_attempt(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an upgrade under a running worker."""
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    async with place.working():
        (job,) = await place.enqueue(jobs.add.bind(1, 2))
        failed = await place.reaches(job, "delayed")
        assert "no child process can be started" in (failed.attempts[0].message or "")
        assert await place.result(jobs.add_here.bind(1, 2)) == 3


def test_the_tests_themselves_are_no_child() -> None:
    """A handler that ends its process must not end this one."""
    assert os.environ.get("TEST_IMPORT_FAILS") is None
