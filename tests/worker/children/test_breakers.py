"""Breakers of handlers in children: what happens there counts; who may not pass snoozes (S58, S110)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from fairlane import BreakerView, Job, State
from tests.worker.children import jobs
from tests.worker.children.conftest import Place


async def breaker(place: Place) -> BreakerView:
    """Return what the breaker is now."""
    return await place.app.breakers.aget("children")


async def tried(job: Job[Any]) -> Job[Any]:
    """Wait until an attempt of a job has ended, and return it."""
    while True:
        found = await job.arefresh()
        if found.attempts and found.attempts[0].ended_at is not None:
            return found
        await asyncio.sleep(0.01)


async def test_a_task_that_fails_in_a_child_counts_for_its_breaker(place: Place) -> None:
    """S58: the errors that count are told apart where they were raised; the worker tells the store."""
    async with place.working():
        call = jobs.call_behind_breaker.bind
        dead = await place.run(call("down"), call("ours"), call("down"))
        assert [job.state for job in dead] == [State.DEAD] * 3
        found = await breaker(place)
        assert (found.state, found.failed, found.recent_failures) == ("closed", 2, 2)
        await place.run(call("down"))
        assert (await breaker(place)).state == "open"
        (parked,) = await place.enqueue(call("down"))
        why = await place.app.jobs.aexplain(parked.id)
        assert (why.reason, why.subject) == ("breaker", "breaker children")


async def test_a_child_hears_of_an_opening_before_it_starts_a_job(place: Place) -> None:
    """S124: although the store has told it a moment ago that the breaker is closed."""
    async with place.working(children=1):
        (called,) = await place.run(jobs.call_in_block.bind("up"))
        assert called.state is State.SUCCEEDED
        await place.app.breakers.aopen("children", reason="maintenance")
        (job,) = await place.enqueue(jobs.call_in_block.bind("up"))
        assert (await tried(job)).attempts[0].outcome == "snoozed"


@pytest.mark.parametrize("task", [jobs.call_in_block, jobs.acall_in_block], ids=["plain", "async"])
async def test_a_block_in_a_child_counts_and_then_snoozes(place: Place, task: jobs.AnyTask) -> None:
    """S110, S124: the child tells the store itself; who starts later, in whatever child, meets it open."""
    async with place.working():
        dead = await place.run(*[task.bind("down")] * 3)
        assert [job.state for job in dead] == [State.DEAD] * 3
        found = await breaker(place)
        assert (found.state, found.failed, found.trips) == ("open", 3, 1)
        assert found.until is not None
        (job,) = await place.enqueue(task.bind("up"))
        snoozed = await place.reaches(job, "delayed")
        assert (snoozed.failures, snoozed.attempts[0].outcome) == (0, "snoozed")
        assert (snoozed.because or "").startswith("snooze: breaker children is open")
        late = snoozed.run_at - found.until
        assert timedelta(seconds=-1) < late <= timedelta(seconds=61)
        assert (await breaker(place)).failed == 3
