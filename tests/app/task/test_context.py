"""What a handler sees: its attempt, whether to stop, its progress, its log."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from fairlane import Cancel, Context, Task
from fairlane.app.task.context import AttemptControl
from fairlane.model.job import Progress
from tests.app.world import World


async def begin(world: World, task: Task[..., None], control: AttemptControl) -> Context:
    """Claim a job and make its context, as a worker will."""
    await task.aenqueue("x")
    claim = await world.claim()
    job = task._tasks.client.show(claim.job)
    deadline = datetime(2030, 1, 1, tzinfo=UTC)
    return Context(
        tenant=job.tenant,
        attempt=job.attempt,
        show=lambda: job,
        fence=claim.fence,
        control=control,
        deadline=deadline,
    )


async def test_a_context_says_whose_attempt_it_is(world: World, task: Task[..., None]) -> None:
    """Tenant, attempt, fence and deadline are those of the claim."""
    context = await begin(world, task, AttemptControl())
    assert (context.tenant, context.attempt, context.job.task) == ("acme", 1, "note")
    assert context.fence == world.one().fence >= world.clock.now()
    assert context.deadline == datetime(2030, 1, 1, tzinfo=UTC)


async def test_a_handler_is_told_to_stop_with_the_first_reason(world: World, task: Task[..., None]) -> None:
    """S30: threads see the flag, and `check` raises what ends the job as cancelled."""
    control = AttemptControl()
    context = await begin(world, task, control)
    assert not context.cancelled
    context.check()
    control.stop("ordered twice")
    control.stop("the claim was lost")
    assert context.cancelled
    with pytest.raises(Cancel, match="ordered twice") as caught:
        context.check()
    assert caught.value.reason == "ordered twice"


async def test_only_the_newest_progress_travels_with_the_next_renewal(
    world: World, task: Task[..., None]
) -> None:
    """S62: and only once."""
    control = AttemptControl()
    context = await begin(world, task, control)
    assert control.take_progress() is None
    context.progress(0.25, "a quarter")
    context.progress(0.5)
    assert control.take_progress() == Progress(0.5, "")
    assert control.take_progress() is None


@pytest.mark.parametrize(("given", "stored"), [(-1, 0.0), (0, 0.0), (0.3, 0.3), (1.0000001, 1.0), (1e9, 1.0)])
async def test_progress_is_bounded(world: World, task: Task[..., None], given: float, stored: float) -> None:
    """A rounding error must not end a job."""
    control = AttemptControl()
    context = await begin(world, task, control)
    context.progress(given, "n" * 1000)
    assert control.take_progress() == Progress(stored, "n" * 500)


async def test_progress_that_is_no_number_is_refused(world: World, task: Task[..., None]) -> None:
    """It could not be shown."""
    context = await begin(world, task, AttemptControl())
    with pytest.raises(ValueError, match="NaN"):
        context.progress(float("nan"))


async def test_the_log_carries_tenant_job_task_and_attempt(
    world: World, task: Task[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """At 3 a.m. the line says whose it is."""
    context = await begin(world, task, AttemptControl())
    with caplog.at_level(logging.INFO, "fairlane.task"):
        context.log.info("sent %d pages", 3)
    (record,) = caplog.records
    assert record.getMessage() == "sent 3 pages"
    about = {name: record.__dict__[name] for name in ("tenant", "job", "task", "attempt")}
    assert about == {"tenant": "acme", "job": str(context.job.id), "task": "note", "attempt": 1}
