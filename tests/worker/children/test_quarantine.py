"""Quarantine: handlers run in children after jobs of their task, or nobody knows which, ended processes."""

from __future__ import annotations

import os

import pytest

from fairlane.worker.children.quarantine import ALL_FOR, TASK_FOR, Quarantine
from tests.worker.children import jobs
from tests.worker.children.conftest import Place
from tests.worker.children.test_suspects import lose


class SetClock:
    """A clock that shows what it is told."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self.now = 0

    def elapsed(self) -> int:
        """Return what it was set to."""
        return self.now


def test_a_task_is_in_quarantine_for_ten_minutes_after_each_death() -> None:
    """Of its own; other tasks are not."""
    clock = SetClock()
    quarantine = Quarantine("w", clock)  # type: ignore[arg-type]
    assert not quarantine.has("bad")
    quarantine.add("bad")
    clock.now = TASK_FOR // 2
    quarantine.add("bad")
    clock.now += TASK_FOR - 1
    assert (quarantine.has("bad"), quarantine.has("good")) == (True, False)
    clock.now += 1
    assert not quarantine.has("bad")


def test_all_tasks_are_in_quarantine_for_a_minute() -> None:
    """It is not known yet whose job it was."""
    clock = SetClock()
    quarantine = Quarantine("w", clock)  # type: ignore[arg-type]
    quarantine.add_all()
    clock.now = ALL_FOR - 1
    assert quarantine.has("any")
    clock.now = ALL_FOR
    assert not quarantine.has("any")


async def test_a_task_whose_suspect_ends_its_child_runs_in_children_from_then_on(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker here is the test itself: a fresh job of that task would end it. Said once."""
    (suspect,) = await lose(place, jobs.exit_here.bind())
    async with place.working():
        await place.reaches(suspect, "delayed")
        fresh = await place.enqueue(*[jobs.exit_here.bind() for _ in range(3)])
        for job in fresh:
            crashed = await place.reaches(job, "delayed")
            assert crashed.attempts[0].error_class == "crash"
        assert await place.result(jobs.pid_here.bind(), tenant="neighbour") == os.getpid()
    told = [one for one in caplog.records if getattr(one, "event", "") == "task_quarantined"]
    assert [one.__dict__["task"] for one in told] == [jobs.exit_here.name]


async def test_in_quarantine_every_handler_runs_in_a_child(place: Place) -> None:
    """Plain and async, also those that a thread would go on with."""
    async with place.working() as worker:
        assert await place.result(jobs.pid_here.bind()) == os.getpid()
        worker.quarantine()
        stored = await place.run(*[jobs.pid_here.bind() for _ in range(20)], jobs.apid_here.bind())
        assert os.getpid() not in {await job.aresult() for job in stored}


async def test_a_job_that_is_only_in_quarantine_runs_here_if_no_child_starts(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has done nothing: it must not fail for want of a process that it did not ask for."""
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    async with place.working() as worker:
        worker.quarantine()
        stored = await place.run(*[jobs.pid_here.bind() for _ in range(20)], jobs.apid_here.bind())
        assert {(await job.aresult(), job.attempt) for job in stored} == {(os.getpid(), 1)}
