"""A job of a slot says so: to callers, to its handler, to `explain`, and so do the jobs that it leads to."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fairlane import Context, Fairlane, Job, Task
from fairlane.app.task.context import AttemptControl
from fairlane.model.identifiers import slot_id
from fairlane.model.instants import to_instant
from fairlane.model.schedule.origin import creator_of
from tests.app.world import World, handling

SLOT = datetime(2026, 11, 19, 14, 35, tzinfo=UTC)


def of_slot(task: Task[..., Any]) -> Job[Any]:
    """Enqueue what the slot of a schedule enqueues."""
    id = slot_id("acme", "stocks", to_instant(SLOT))
    return task.using(tenant="acme", created_by=creator_of("stocks"), correlation_id=str(id)).enqueue("x")


def context_of(job: Job[Any]) -> Context:
    """Return what the handler of a job sees."""
    return Context(tenant=job.tenant, attempt=1, show=lambda: job, fence=1, control=AttemptControl())


def test_a_job_of_a_slot_says_so(task: Task[..., None]) -> None:
    """Others do not, whatever they say of who has created them."""
    job = of_slot(task)
    assert (job.schedule, job.slot) == ("stocks", SLOT)
    assert (job.refresh().schedule, job.refresh().slot) == ("stocks", SLOT)
    other = task.using(created_by="schedule:stocks").enqueue("y")
    assert (other.schedule, other.slot) == (None, None)


def test_its_handler_knows_and_so_do_the_jobs_that_it_enqueues(task: Task[..., None]) -> None:
    """They serve the same slot."""
    context = context_of(of_slot(task))
    assert (context.schedule, context.slot) == ("stocks", SLOT)
    with handling(context):
        child = task.enqueue("child")
    assert (child.schedule, child.slot) == ("stocks", SLOT)
    plain = context_of(task.enqueue("z"))
    assert (plain.schedule, plain.slot) == (None, None)


def test_explain_names_the_schedule_and_the_slot(world: World, app: Fairlane, task: Task[..., None]) -> None:
    """Of a job of a slot, and of no other."""
    why = app.jobs.explain(of_slot(task).id)
    assert (why.schedule, why.slot) == ("stocks", SLOT)
    other = app.jobs.explain(task.enqueue("y").id)
    assert (other.schedule, other.slot) == (None, None)
    assert world.verbs().count("explain") == 2
