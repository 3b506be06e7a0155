"""`app.jobs.find` with a query (S78)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairlane import Fairlane, Job, QueryError, Task, TenantMismatch
from fairlane.model.instants import HOUR
from fairlane.store.contract.request import MAX_ROWS_READ
from tests.app.world import World


def numbered(n: int) -> None:
    """Take one number."""


@pytest.fixture
def app(world: World) -> Fairlane:
    """An application on an empty store."""
    return world.app()


@pytest.fixture
def task(app: Fairlane) -> Task[..., None]:
    """A task with one argument."""
    return app.task(name="mail.send")(numbered)


def found(app: Fairlane, query: str, page: int = 50, **filters: Any) -> list[int]:
    """Return the numbers of all jobs that match, page by page."""
    jobs: list[Job[Any]] = []
    cursor: str | None = None
    for _ in range(100):
        reply = app.jobs.find(query, limit=page, cursor=cursor, **filters)
        assert len(reply.items) <= page
        jobs += reply.items
        cursor = reply.cursor
        if cursor is None:
            return [job.arguments["n"] for job in jobs]
    pytest.fail("paging does not end")


@pytest.mark.parametrize("page", [1, 2, 3, 50])
@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("tenant:acme", {0, 2, 4, 6, 8}),
        ("tenant:acme,globex", set(range(10))),
        ("-tenant:acme", {1, 3, 5, 7, 9}),
        ("arg.n:>6", {7, 8, 9}),
        ("arg.n:>6 tenant:acme", {8}),
        ("arg.n:2..3 or arg.n:7", {2, 3, 7}),
        ("task:mail.*", set(range(10))),
        ("task:mail.send queue:bulk", set()),
        ("tag:third", {0, 3, 6, 9}),
        ("-tag:third state:ready", {1, 2, 4, 5, 7, 8}),
        ("state:waiting enqueued:1h", set(range(10))),
        ("enqueued:>1h", set()),
    ],
)
def test_pages_of_a_query_have_every_match_once(
    app: Fairlane, task: Task[..., None], query: str, numbers: set[int], page: int
) -> None:
    """Newest first, whatever the page holds, also where the store cannot compare."""
    for n in range(10):
        tags = ["third"] if n % 3 == 0 else None
        task.using(tenant="globex" if n % 2 else "acme", tags=tags).enqueue(n)
    assert found(app, query, page) == sorted(numbers, reverse=True)


def test_a_query_and_filters_must_both_hold(app: Fairlane, task: Task[..., None]) -> None:
    """A filter that contradicts the query finds nothing; it does not replace a part of it."""
    task.using(tenant="acme", tags=["a"]).enqueue(1)
    task.using(tenant="globex", tags=["a"]).enqueue(2)
    assert found(app, "tag:a", tenant="acme") == [1]
    assert found(app, "tenant:globex", tenant="acme") == []
    assert found(app, "state:dead", state="ready") == []


def test_a_job_is_found_by_its_id(app: Fairlane, task: Task[..., None]) -> None:
    """By the whole of it or its end, within what else is asked for."""
    job, other = task.using(tenant="acme").enqueue(1), task.using(tenant="acme").enqueue(2)
    assert found(app, f"id:{job.id}") == [1]
    assert found(app, str(job.id)) == [1]
    assert found(app, str(other.id)[-12:]) == [2]
    assert found(app, f"id:{job.id} state:dead") == []
    assert found(app, f"id:{job.id}", tenant="globex") == []


def test_a_query_inside_a_tenant_finds_its_jobs_alone(app: Fairlane, task: Task[..., None]) -> None:
    """S9: naming another tenant is refused, and an id of another one is not found."""
    task.using(tenant="acme").enqueue(1)
    theirs = task.using(tenant="globex").enqueue(2)
    with app.tenant("acme"):
        assert found(app, "task:mail.*") == [1]
        assert found(app, "-tenant:acme") == []
        assert found(app, f"id:{theirs.id}") == []
        with pytest.raises(TenantMismatch):
            app.jobs.find("tenant:globex")


def test_ages_count_from_the_clock_of_the_store(world: World, app: Fairlane, task: Task[..., None]) -> None:
    """S1: the clock of this machine is not asked."""
    task.using(tenant="acme").enqueue(1)
    world.clock.advance(2 * HOUR / 1_000_000)
    task.using(tenant="acme").enqueue(2)
    assert found(app, "enqueued:1h") == [2]
    assert found(app, "wait:>1h") == [1]


def test_one_call_reads_a_bounded_number_of_jobs(app: Fairlane, task: Task[..., None]) -> None:
    """S51: an empty page with a cursor, and the next call goes on from there."""
    for start in range(0, MAX_ROWS_READ + 1_000, 1_000):
        app.enqueue_many(task.using(tenant="acme").bind(n) for n in range(start, start + 1_000))
    page = app.jobs.find("arg.n:0")
    assert page.items == ()
    assert page.cursor is not None
    assert [job.arguments["n"] for job in app.jobs.find("arg.n:0", cursor=page.cursor)] == [0]


@pytest.mark.parametrize("query", ["tenent:acme", "state:deadd", "(a", "wait:5"])
def test_a_wrong_query_is_refused_before_the_store_is_asked(app: Fairlane, query: str) -> None:
    """With one error, plain and async alike."""
    with pytest.raises(QueryError):
        app.jobs.find(query)
    with pytest.raises(QueryError):
        asyncio.run(app.jobs.afind(query))


def test_a_query_is_a_text(app: Fairlane) -> None:
    """Another type is refused by name."""
    with pytest.raises(ValueError, match="query: is of type int"):
        app.jobs.find(5)  # type: ignore[arg-type]
