"""`app.jobs`: find, count, explain, cancel with descendants, run now, and the async twins."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from uuid import UUID, uuid4

import pytest

from fairlane import CancelReply, Fairlane, JobNotFound, Jobs, State, Task
from fairlane.app.admin.explain import waiting_of
from fairlane.model.identifiers import to_base32
from fairlane.model.instants import SECOND
from fairlane.model.policy.overrides import Subject, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import Reason, Why
from fairlane.store.contract.policies import HoldRequest
from tests.app.world import World, ids_of, note


def test_a_job_is_found_by_its_id_in_every_form(app: Fairlane, task: Task[..., None]) -> None:
    """UUID, its text, and the short form that people read out."""
    job = task.enqueue("x")
    for id in (job.id, str(job.id), to_base32(job.id)):
        assert app.jobs.get(id).id == job.id


def test_an_unknown_id_and_a_bad_one_are_told_apart(world: World, app: Fairlane) -> None:
    """One is not there, the other could not be."""
    with pytest.raises(JobNotFound) as caught:
        app.jobs.get(UUID(int=7))
    assert caught.value.id == UUID(int=7)
    with pytest.raises(JobNotFound):
        app.jobs.explain(UUID(int=7))
    world.asked.clear()
    with pytest.raises(ValueError, match="is no job id"):
        app.jobs.get("nonsense")
    assert world.asked == []


async def test_jobs_are_found_by_every_filter(world: World, app: Fairlane, task: Task[..., None]) -> None:
    """Each narrows to the one job that meets it."""
    start = datetime.fromtimestamp(world.clock.now() / SECOND, UTC)
    parent = await task.aenqueue("parent")
    world.clock.advance(10)
    other = app.task(name="other", queue="bulk")(note)
    wanted = await other.using(
        tenant="acme",
        tags=["red"],
        correlation_id="c",
        parent=parent,
        delay=60,
        metadata={"plan": "pro", "at": {"page": 7}, "done": False, "error": None, "rate": 0.5},
    ).aenqueue("x")
    world.clock.advance(10)
    await task.using(tenant="globex").aenqueue("later")
    filters: list[dict[str, Any]] = [
        {"queue": "bulk"},
        {"task": "other"},
        {"state": State.DELAYED},
        {"state": "delayed"},
        {"state": [State.DELAYED, State.DEAD]},
        {"correlation_id": "c"},
        {"tag": "red"},
        {"parent": parent.id},
        {"since": start + timedelta(seconds=10), "until": start + timedelta(seconds=20)},
        {"tenant": "acme", "since": start + timedelta(seconds=1)},
        {"metadata": {"plan": "pro"}},
        {"metadata": {"at.page": 7, "done": False, "error": None, "rate": 0.5}},
    ]
    for one in filters:
        page = await app.jobs.afind(**one)
        assert (one, [job.id for job in page], page.cursor) == (one, [wanted.id], None)
        assert [job.id async for job in app.jobs.aeach(**one)] == [wanted.id]
    assert len((await app.jobs.afind()).items) == 3
    assert (await app.jobs.afind(queue="bulk", tag="blue")).items == ()


def test_pages_follow_each_other_newest_first(app: Fairlane, task: Task[..., None]) -> None:
    """No job twice, none missed."""
    jobs = ids_of(app.enqueue_many([task.bind(n) for n in range(7)]))
    seen, cursor = [], None
    while True:
        page = app.jobs.find(limit=3, cursor=cursor)
        seen += [job.id for job in page]
        cursor = page.cursor
        if cursor is None:
            break
    assert seen == jobs[::-1]


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"limit": 0}, "limit is 0"),
        ({"limit": 1001}, "limit is 1001"),
        ({"cursor": "nonsense"}, "is not a cursor"),
        ({"state": "reddy"}, "reddy"),
        ({"state": []}, "names no state"),
        ({"since": datetime(2030, 1, 1)}, "no time zone"),  # noqa: DTZ001 (it is about that)
        ({"metadata": ["step"]}, "metadata: is of type list; give a dict of paths and plain values"),
        ({"metadata": {"step": [3]}}, "metadata.step: is of type list; compare with text, a number, True, "),
        ({"metadata": {"step": uuid4()}}, "metadata.step: is of type UUID"),
        ({"metadata": {3: 3}}, "metadata: has a key of type int; use dotted paths, such as"),
        ({"metadata": {"": 3}}, "metadata: has a key of type str; use dotted paths"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(app: Fairlane, filters: dict[str, Any], message: str) -> None:
    """Instead of finding nothing."""
    with pytest.raises(ValueError, match=message):
        app.jobs.find(**filters)


def test_metadata_is_no_filter_of_counts(app: Fairlane) -> None:
    """It is read by `find` and `each` alone."""
    with pytest.raises(TypeError, match="'metadata' is not a filter"):
        app.jobs.count(metadata={"step": 3})  # type: ignore[call-arg]


async def test_counts_are_by_state_and_every_state_is_there(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """Over all tenants and queues, or narrowed."""
    assert await app.jobs.acount() == dict.fromkeys(State, 0)
    await app.aenqueue_many([task.bind(1), task.bind(2), task.using(tenant="globex", delay=5).bind(3)])
    await world.succeed()
    counts = await app.jobs.acount()
    assert {state: n for state, n in counts.items() if n} == {
        State.READY: 1,
        State.SUCCEEDED: 1,
        State.DELAYED: 1,
    }
    assert sum((await app.jobs.acount(tenant="globex")).values()) == 1
    assert sum((await app.jobs.acount(queue="bulk")).values()) == 0


async def test_counts_add_up_over_pages(app: Fairlane, task: Task[..., None]) -> None:
    """S51: 1,001 tenants have one more count than a page holds."""
    await app.aenqueue_many([task.using(tenant=f"t{number}").bind(number) for number in range(1_000)])
    await task.aenqueue("one more")
    assert (await app.jobs.acount())[State.READY] == 1_001


def test_peek_shows_the_next_jobs_without_taking_them(app: Fairlane, task: Task[..., None]) -> None:
    """S65: in the order of claims."""
    low, high = app.enqueue_many([task.bind(1), task.using(priority=5).bind(2)])
    assert [job.id for job in app.jobs.peek("default")] == [high.id, low.id]
    assert [job.id for job in app.jobs.peek("default", 1)] == [high.id]
    assert {job.state for job in app.jobs.find()} == {State.READY}
    with pytest.raises(ValueError, match="n is 0"):
        app.jobs.peek("default", 0)


# ── explain ──────────────────────────────────────────────────────────────────


async def test_explain_says_what_holds_a_job_and_what_to_do(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """From waiting for its time to its end."""
    job = await task.using(delay=60).aenqueue("x")
    why = await app.jobs.aexplain(job.id)
    assert (why.reason, why.until) == ("time", job.run_at)
    assert "run_now" in why.advice
    await app.jobs.arun_now(job.id)
    assert (await app.jobs.aexplain(job.id)).reason == "no_worker"
    hold = HoldRequest(
        scope=Scope.all(), subject=Subject(SubjectKind.TENANT, "acme"), who="ops@x", reason="unpaid"
    )
    await world.oracle.policies.pause(hold)
    why = await app.jobs.aexplain(str(job.id))
    assert why.reason == "paused"
    assert "acme" in why.subject
    await app.jobs.acancel(job.id)
    assert (await app.jobs.aexplain(job.id)).reason == "finished"


@pytest.mark.parametrize("reason", get_args(Reason))
def test_every_reason_has_its_own_advice(reason: Reason) -> None:
    """Whatever a store can answer, a person is told what to do."""
    advice = waiting_of(Why(reason, "x")).advice
    assert advice.endswith(".")
    others = [waiting_of(Why(other)).advice for other in get_args(Reason) if other != reason]
    assert advice not in others


# ── changing ─────────────────────────────────────────────────────────────────


def test_several_jobs_are_cancelled_at_once(world: World, app: Fairlane, task: Task[..., None]) -> None:
    """Ids that are not found are left out."""
    one, two = app.enqueue_many([task.bind(1), task.bind(2)])
    replies = app.jobs.cancel(one.id, str(two.id), UUID(int=9), reason="ordered twice")
    assert replies == {one.id: CancelReply.CANCELLED, two.id: CancelReply.CANCELLED}
    assert {record.because for record in world.stored()} == {"asked: ordered twice"}
    assert app.jobs.cancel() == {}


async def test_a_cancel_reaches_descendants_only_if_asked_to(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S22: the only cascade; it goes on below a child that has ended, and does not touch others."""
    root = await task.aenqueue("root")
    child = await task.using(parent=root).aenqueue("child")
    await world.succeed()  # the root, which was first
    grandchild = await task.using(parent=child).aenqueue("grandchild")
    cousin = await task.aenqueue("cousin")
    assert await app.jobs.acancel(root.id) == {root.id: CancelReply.FINISHED}
    assert await app.jobs.acancel(root.id, descendants=True) == {
        root.id: CancelReply.FINISHED,
        child.id: CancelReply.CANCELLED,
        grandchild.id: CancelReply.CANCELLED,
    }
    assert (await cousin.arefresh()).state is State.READY


async def test_a_cancel_of_descendants_ends_when_jobs_are_each_others_parents(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S22: links are not checked, so a circle must do no harm."""
    one = await task.aenqueue("x")
    two = await task.using(parent=one).aenqueue("y")
    books = world.oracle.jobs._core.books
    books.change(books.jobs[one.id], parent_id=two.id)
    assert set(await app.jobs.acancel(one.id, descendants=True)) == {one.id, two.id}


async def test_descendants_of_a_job_that_is_no_longer_kept_are_found(
    app: Fairlane, task: Task[..., None]
) -> None:
    """S22: the link outlives the parent."""
    orphan = await task.using(parent=UUID(int=1)).aenqueue("x")
    assert set(await app.jobs.acancel(UUID(int=1), descendants=True)) == {orphan.id}


def test_more_children_than_fit_on_a_page_are_cancelled(app: Fairlane, task: Task[..., None]) -> None:
    """A page is not the end."""
    parent = task.enqueue("x")
    children = app.enqueue_many([task.using(parent=parent).bind(n) for n in range(1000)])
    more = app.enqueue_many([task.using(parent=parent).bind(n) for n in range(5)])
    assert len(app.jobs.cancel(parent.id, descendants=True)) == 1 + len(children) + len(more)


def test_run_now_counts_the_jobs_that_were_delayed(app: Fairlane, task: Task[..., None]) -> None:
    """S53: ready ones stay as they are."""
    delayed, ready = app.enqueue_many([task.using(delay=60).bind(1), task.bind(2)])
    assert app.jobs.run_now(delayed.id, ready.id, delayed.id, UUID(int=1)) == 1
    assert app.jobs.get(delayed.id).state is State.READY


# ── twins ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", [Jobs, Task, Fairlane])
def test_every_blocking_method_has_an_async_twin_of_the_same_signature(kind: type) -> None:
    """`get` and `aget`, and so on: nothing is missing on either side."""
    twins = {
        name
        for name, member in inspect.getmembers(kind, inspect.iscoroutinefunction)
        if name.startswith("a") and not name.startswith("_")
    }
    assert twins
    for name in twins:
        twin, plain = getattr(kind, name), getattr(kind, name[1:])
        assert inspect.signature(plain) == inspect.signature(twin)
        assert not inspect.iscoroutinefunction(plain)


def test_every_method_of_the_namespace_has_a_twin() -> None:
    """No sync method without one."""
    public = {name for name in dir(Jobs) if not name.startswith("_")}
    reads = {"get", "find", "each", "count", "peek", "explain", "failures", "stuck", "trace"}
    verbs = {*reads, "cancel", "run_now", "edit", "condemn", "again", "fail", "take_back"}
    verbs |= {"cancel_all", "run_now_all", "condemn_all"}
    assert public == verbs | {f"a{verb}" for verb in verbs}
