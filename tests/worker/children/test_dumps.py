"""Looking inside a worker shows what its child processes do (S70)."""

from __future__ import annotations

import logging

import pytest

from fairlane.model.instants import SECOND
from fairlane.worker.inspection import questions
from tests.worker.children import jobs
from tests.worker.children.conftest import Place, until


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers look for questions more often than every two seconds."""
    monkeypatch.setattr(questions, "LOOK_EVERY", SECOND // 50)


async def test_a_status_says_which_handlers_run_in_a_process(place: Place) -> None:
    """S70: beside those in the loop and in threads."""
    async with place.working() as worker:
        (job,) = await place.enqueue(jobs.wait_for_cancel.bind(place.file))
        await place.noted()
        status = await place.app.workers.astatus(worker.id)
        assert [(slot.job, slot.runs_in) for slot in status.slots] == [(str(job.id), "process")]


async def test_a_dump_lets_children_log_their_stacks_with_tenant_and_job(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """S70: the answer says where they are; the job goes on."""
    caplog.set_level(logging.INFO, logger="fairlane.output")
    async with place.working() as worker:
        (job,) = await place.enqueue(jobs.wait_for_cancel.bind(place.file), tenant="globex")
        await place.noted()
        text = await place.app.workers.adump(worker.id)
        assert f"(process): tenant globex, job {job.id}" in text
        assert "their stacks follow in the log of this worker" in text

        def stack() -> list[logging.LogRecord]:
            return [one for one in caplog.records if "in wait_for_cancel" in one.getMessage()]

        await until(lambda: bool(stack()), "the child wrote no stack")
        assert (vars(stack()[0])["tenant"], vars(stack()[0])["job"]) == ("globex", str(job.id))
        assert (await job.arefresh()).state.value == "running"


async def test_a_dump_does_not_kill_a_child_that_starts(place: Place) -> None:
    """It may not handle the signal yet: only children that are ready get it."""
    async with place.working(children=1) as worker:
        (job,) = await place.enqueue(jobs.add.bind(1, 2))
        await until(lambda: worker.running == 1)
        while worker.running:
            await place.app.workers.adump(worker.id)
        assert (await place.reaches(job, "succeeded")).attempt == 1
