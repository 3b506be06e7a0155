"""`created_by`: who asked for a job is stored, inherited inside handlers, and searchable (S22, S51)."""

from __future__ import annotations

import pytest

from fairlane import Context, Fairlane, InvalidJob, Job, Task
from fairlane.app.task.context import AttemptControl
from tests.app.world import World, handling, note


def running(job: Job[None]) -> Context:
    """Return the context of a handler that runs this job."""
    return Context(tenant=job.tenant, attempt=1, show=lambda: job, fence=1, control=AttemptControl())


def test_who_asked_for_a_job_is_stored_with_it(world: World, task: Task[..., None]) -> None:
    """And shown in every snapshot; without the option nobody is named."""
    job = task.using(created_by="ann@example.com").enqueue("a")
    assert (job.created_by, world.one().created_by) == ("ann@example.com", "ann@example.com")
    assert job.refresh().created_by == "ann@example.com"
    assert task.enqueue("b").created_by is None


def test_a_batch_stores_who_asked_for_each_of_its_jobs(app: Fairlane, task: Task[..., None]) -> None:
    """It differs from job to job, as a tenant does."""
    calls = [task.using(created_by=name).bind(name) for name in ("ann", "bob")]
    assert [job.created_by for job in app.enqueue_many([*calls, task.bind("x")])] == ["ann", "bob", None]


def test_a_job_made_by_name_may_say_who_asked_for_it(app: Fairlane, task: Task[..., None]) -> None:
    """An option like those of `using`."""
    assert app.enqueue_by_name(task.name, {}, tenant="acme", created_by="ann").created_by == "ann"


def test_a_handlers_jobs_inherit_who_asked_unless_it_is_given(task: Task[..., None]) -> None:
    """S22: the one who asked for the first job asked for what it leads to."""
    with handling(running(task.using(created_by="ann").enqueue("running"))):
        child = task.enqueue("child")
        assert (child.created_by, task.using(created_by="bob").enqueue("other").created_by) == ("ann", "bob")
    with handling(running(child)):
        assert task.enqueue("grandchild").created_by == "ann"
    with handling(running(task.enqueue("nobody"))):
        assert task.enqueue("child").created_by is None


def test_jobs_are_found_counted_and_walked_by_who_asked_for_them(
    app: Fairlane, task: Task[..., None]
) -> None:
    """S51: an exact match within the scope."""
    ann = task.using(created_by="ann").enqueue("a")
    task.using(created_by="Ann").enqueue("b")
    app.task(name="other")(note).using(tenant="globex", created_by="ann").enqueue()
    assert [job.id for job in app.jobs.find(created_by="ann", tenant="acme")] == [ann.id]
    assert [job.id for job in app.jobs.each(created_by="ann", tenant="acme")] == [ann.id]
    assert app.jobs.count(created_by="ann").total == 2
    with app.tenant("acme"):
        assert [job.id for job in app.jobs.find(created_by="ann")] == [ann.id]


@pytest.mark.parametrize("value", ["", "x" * 256, "a\x00b", 7])
def test_what_cannot_be_a_name_is_refused_by_its_field(task: Task[..., None], value: object) -> None:
    """S3: as for a correlation id."""
    with pytest.raises(InvalidJob) as caught:
        task.using(created_by=value).enqueue("a")  # type: ignore[arg-type]
    assert [problem.field for problem in caught.value.problems] == ["created_by"]
