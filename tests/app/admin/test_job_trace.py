"""`app.jobs.trace`: ancestors and everything of their correlation ids, each behind its parent (S22)."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from fairlane import Fairlane, JobNotFound, Task
from fairlane.app.admin.job_trace import MAX_TRACED
from fairlane.model.job import NewJob
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import EnqueueRequest
from tests.app.world import World, note


@pytest.fixture
def app(world: World) -> Fairlane:
    """An application on an empty store."""
    return world.app()


@pytest.fixture
def task(app: Fairlane) -> Task[..., None]:
    """A plain task of tenant acme."""
    return app.task(name="note")(note).using(tenant="acme")


def shown(app: Fairlane, id: UUID) -> list[tuple[UUID, int]]:
    """Return ids and depths of a trace."""
    return [(one.job.id, one.depth) for one in app.jobs.trace(id)]


def test_a_trace_is_the_same_from_every_job_of_it(app: Fairlane, task: Task[..., None]) -> None:
    """Each behind its parent, the first enqueued first."""
    root = task.using(correlation_id="order-1").enqueue()
    first = task.using(correlation_id="order-1", parent=root.id).enqueue()
    grandchild = task.using(correlation_id="order-1", parent=first.id).enqueue()
    second = task.using(correlation_id="order-1", parent=root.id).enqueue()
    beside = task.using(correlation_id="order-1").enqueue()
    task.enqueue()  # of another story
    wanted = [(root.id, 0), (first.id, 1), (grandchild.id, 2), (second.id, 1), (beside.id, 0)]
    for job in (root, first, grandchild, second, beside):
        trace = app.jobs.trace(job.id)
        assert trace.id == job.id
        assert trace.is_complete
        assert shown(app, job.id) == wanted


def test_ancestors_are_followed_beyond_the_correlation_id(app: Fairlane, task: Task[..., None]) -> None:
    """A job that was given a correlation id of its own still has its parent."""
    root = task.using(correlation_id="import").enqueue()
    child = task.using(correlation_id="mail", parent=root.id).enqueue()
    sibling = task.using(correlation_id="import", parent=root.id).enqueue()
    assert shown(app, child.id) == [(root.id, 0), (child.id, 1), (sibling.id, 1)]
    # Who looks from the root sees its own correlation id: nothing lists the children of a job.
    assert shown(app, root.id) == [(root.id, 0), (sibling.id, 1)]


def test_a_parent_that_is_gone_or_foreign_ends_the_trace(app: Fairlane, task: Task[..., None]) -> None:
    """S9: a job of another tenant is not shown, not even as a parent."""
    theirs = task.using(tenant="globex", correlation_id="c").enqueue()
    orphan = task.using(parent=UUID(int=1)).enqueue()
    mine = task.using(parent=theirs.id, correlation_id="c").enqueue()
    assert shown(app, orphan.id) == [(orphan.id, 0)]
    with app.tenant("acme"):
        assert shown(app, mine.id) == [(mine.id, 0)]
        with pytest.raises(JobNotFound):
            app.jobs.trace(theirs.id)


def test_a_circle_of_parents_is_shown_once(world: World, app: Fairlane) -> None:
    """Parents are not checked: whoever names them may name a circle."""
    one, other = UUID(int=2**100 + 1), UUID(int=2**100 + 2)
    jobs = tuple(
        NewJob(
            id=id,
            tenant="acme",
            queue="default",
            task="note",
            payload=b"{}",
            checksum=0,
            parent_id=parent,
            correlation_id="c",
        )
        for id, parent in ((one, other), (other, one))
    )
    asyncio.run(world.oracle.jobs.enqueue(EnqueueRequest(scope=Scope.all(), jobs=jobs)))
    assert sorted(shown(app, one)) == [(one, 0), (other, 0)]


def test_a_trace_reads_a_bounded_number_of_jobs(app: Fairlane, task: Task[..., None]) -> None:
    """And says so."""
    for _ in range(2):
        app.enqueue_many(task.using(correlation_id="big").bind() for _ in range(600))
    first = app.jobs.find(correlation_id="big", limit=1).items[0]
    trace = app.jobs.trace(first.id)
    assert (len(trace.jobs), trace.is_complete) == (MAX_TRACED, False)
