"""`app.jobs.count` and `each`: with every filter, over all pages, exact about what was scanned."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from fairlane import Context, Counts, Fairlane, State, Task, TenantMismatch
from fairlane.app.task.context import AttemptControl
from fairlane.model.failure import ErrorClass
from fairlane.model.scope import Scope
from tests.app.world import World, handling


async def test_an_import_is_counted_by_its_tag_and_known_to_be_finished(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S51: how many are done, how many are dead, is it complete: one call."""
    for _ in range(3):
        await task.using(tags=["import-7"]).aenqueue("x")
    await task.using(delay=60).aenqueue("x")
    counts = await app.jobs.acount(tag="import-7")
    assert (counts[State.READY], counts.total, counts.waiting, counts.unfinished) == (3, 3, 3, 3)
    assert (counts.looked_at, counts.is_complete, counts.is_finished) == (4, True, False)
    await world.succeed()
    await world.succeed()
    await world.fail()
    counts = await app.jobs.acount(tag="import-7")
    assert (counts[State.SUCCEEDED], counts[State.DEAD], counts.is_finished) == (2, 1, True)
    assert counts == {**dict.fromkeys(State, 0), State.SUCCEEDED: 2, State.DEAD: 1}
    assert counts.because[State.DEAD] == {"failed": 1}
    assert len(counts) == len(State)
    assert list(counts) == list(State)


async def test_every_filter_counts_what_it_finds(world: World, app: Fairlane, task: Task[..., None]) -> None:
    """S51: by tag, parent, correlation, task, state and time."""
    start = datetime.fromtimestamp(world.clock.now() / 1_000_000, UTC)
    parent = await task.aenqueue("parent")
    world.clock.advance(10)
    await task.using(tenant="globex", tags=["x"], correlation_id="r1").aenqueue("y")
    await task.using(parent=parent, delay=60).aenqueue("z")
    since = datetime.fromtimestamp(world.clock.now() / 1_000_000, UTC)
    cases: list[tuple[dict[str, Any], int]] = [
        ({}, 3),
        ({"tenant": "acme"}, 2),
        ({"queue": "default", "state": State.READY}, 2),
        ({"state": [State.READY, State.DELAYED]}, 3),
        ({"state": "dead"}, 0),
        ({"tag": "x"}, 1),
        ({"tag": "x", "tenant": "acme"}, 0),
        ({"parent": parent.id}, 1),
        ({"parent": str(parent.id)}, 1),
        ({"correlation_id": "r1"}, 1),
        ({"task": "note"}, 3),
        ({"task": "other"}, 0),
        ({"since": since}, 2),
        ({"until": since}, 1),
        ({"since": start, "until": start}, 0),
    ]
    assert [(await app.jobs.acount(**filters)).total for filters, _ in cases] == [one for _, one in cases]
    found = [len([job async for job in app.jobs.aeach(**filters)]) for filters, _ in cases]
    assert found == [one for _, one in cases]


async def test_plain_counts_ask_counters_and_look_at_no_job(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S51: by tenant, queue and state; with a reason they cannot."""
    await task.aenqueue("x")
    world.asked.clear()
    counts = await app.jobs.acount(tenant="acme", queue="default", state=State.READY)
    assert world.verbs() == ["count"]
    assert (counts[State.READY], counts.looked_at, counts.is_complete, counts.because) == (1, 1, True, {})
    await app.jobs.acount(because=True)
    assert world.verbs() == ["count", "tally"]


async def test_delayed_jobs_are_counted_apart_by_what_they_wait_for(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S23, S51: a time, a retry."""
    await task.using(delay=60).aenqueue("x")
    for _ in range(2):
        await task.aenqueue("x")
        await world.fail(kind=ErrorClass.RETRYABLE)
    counts = await app.jobs.acount(because=True)
    assert counts.because == {State.DELAYED: {"retry": 2, "time": 1}}


async def test_a_bounded_count_says_so_and_goes_on(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S51: `most` is what it looks at; the cursor leads to the rest."""
    for _ in range(5):
        await task.using(tags=["x"]).aenqueue("x")
        world.clock.advance(1)
    counts = await app.jobs.acount(tag="x", most=3)
    assert (counts.total, counts.looked_at, counts.is_complete, counts.is_finished) == (3, 3, False, False)
    rest = await app.jobs.acount(tag="x", cursor=counts.cursor)
    assert (rest.total, rest.is_complete) == (2, True)
    assert rest.oldest_at is not None
    assert counts.oldest_at is not None
    assert rest.oldest_at > counts.oldest_at


def test_each_goes_on_by_itself_and_stops_at_its_limit(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S51: newest first, over as many pages as it takes; what is not asked for is not read."""
    jobs = app.enqueue_many(task.bind(str(number)) for number in range(450))
    newest = [job.id for job in reversed(jobs)]
    world.asked.clear()
    assert [job.id for job in app.jobs.each()] == newest
    assert world.verbs() == ["find"] * 3
    assert [job.id for job in app.jobs.each(limit=3)] == newest[:3]
    assert [job.id for job in app.jobs.each(limit=201)] == newest[:201]
    world.asked.clear()
    first = app.jobs.each()
    assert next(first).id == newest[0]
    assert world.verbs() == ["find"]
    assert list(app.jobs.each(task="missing")) == []


async def test_its_twin_does_the_same(app: Fairlane, task: Task[..., None]) -> None:
    """With `async for`, in the caller's own loop."""
    jobs = await app.aenqueue_many(task.bind(str(number)) for number in range(250))
    assert [job.id async for job in app.jobs.aeach()] == [job.id for job in reversed(jobs)]
    assert len([job async for job in app.jobs.aeach(limit=201)]) == 201
    assert not app.client.portal.is_open


async def test_inside_a_tenant_only_its_own_jobs_are_counted(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S9: neither counted, nor given, nor looked at; a foreign tenant is refused and nobody is asked."""
    for tenant in ("acme", "globex", "globex"):
        await task.using(tenant=tenant, tags=["x"]).aenqueue("x")
    with app.tenant("acme"):
        counts = await app.jobs.acount(tag="x")
        assert (counts.total, counts.looked_at) == (1, 1)
        assert [job.tenant async for job in app.jobs.aeach()] == ["acme"]
        world.asked.clear()
        for call in (lambda: app.jobs.each(tenant="globex"), lambda: app.jobs.aeach(tenant="globex")):
            with pytest.raises(TenantMismatch):
                call()
        with pytest.raises(TenantMismatch):
            await app.jobs.acount(tenant="globex", tag="x")
    assert world.asked == []


LONG = "x" * 2_001

REFUSED: list[tuple[Callable[[Fairlane], object], str]] = [
    (lambda app: app.jobs.find(tenant="a b"), "tenant 'a b' is not a legal name; use 1 to 128"),
    (lambda app: app.jobs.find(queue="Bulk"), "queue 'Bulk' is not a legal name; use 1 to 63"),
    (lambda app: app.jobs.find(task="no/te"), "task 'no/te' is not a legal name; use 1 to 200"),
    (lambda app: app.jobs.find(tag="\x00"), r"tag '\\x00' is not a legal name; use 1 to 255"),
    (lambda app: app.jobs.find(tag="\ud800"), r"tag '\\ud800' is not a legal name"),
    (lambda app: app.jobs.find(tag="x" * 10_000), f"tag '{'x' * 76}... is not a legal name"),
    (lambda app: app.jobs.find(correlation_id=""), "correlation_id '' is not a legal name"),
    (lambda app: app.jobs.find(created_by=""), "created_by '' is not a legal name"),
    (lambda app: app.jobs.find(tag=7), "tag 7 is not a legal name"),  # type: ignore[arg-type]
    (lambda app: app.jobs.find(parent="x"), "'x' is no job id"),
    (lambda app: app.jobs.find(parent=7), "parent: is of type int; give the id of a job"),  # type: ignore[arg-type]
    (lambda app: app.jobs.find(since=7), "since: is of type int; give a datetime"),  # type: ignore[arg-type]
    (lambda app: app.jobs.find(until=datetime(2030, 1, 1)), "until: has no time zone"),  # noqa: DTZ001 (bait)
    (lambda app: app.jobs.find(state="late"), "state: 'late' is not a state; use delayed, ready"),  # type: ignore[arg-type]
    (lambda app: app.jobs.find(state=7), "state: a value of type int is not a state"),  # type: ignore[arg-type]
    (lambda app: app.jobs.find(state=[]), "state names no state"),
    (lambda app: app.jobs.find(limit=0), "limit is 0; use 1 to 1000, and the cursor for more"),
    (lambda app: app.jobs.find(limit="9"), "limit: is of type str; use a whole number"),  # type: ignore[arg-type]
    (lambda app: app.jobs.find(cursor="x"), "'x' is not a cursor"),
    (lambda app: app.jobs.find(cursor=7), "cursor: is of type int"),  # type: ignore[arg-type]
    (lambda app: app.jobs.count(tag="\n"), "tag '.n' is not a legal name"),
    (lambda app: app.jobs.count(most=0), "most is 0; use 1 to"),
    (lambda app: app.jobs.count(cursor=7), "cursor: is of type int; give a text"),  # type: ignore[arg-type]
    (lambda app: app.jobs.each(queue="Bulk"), "queue 'Bulk' is not a legal name"),
    (lambda app: app.jobs.aeach(limit=-1), "limit is -1"),
    (lambda app: app.jobs.peek("Bulk"), "queue 'Bulk' is not a legal name"),
    (lambda app: app.jobs.peek("bulk", tenant="a b"), "tenant 'a b' is not a legal name"),
    (
        lambda app: app.jobs.cancel(UUID(int=1), reason=LONG),
        "reason: has 2,001 characters; use at most 2,000",
    ),
    (lambda app: app.tenants.pause("acme", reason="a\x00b"), "reason: has a control character; use at most"),
    (lambda app: app.tenants.pause("acme", reason=LONG), "reason: has 2,001 characters"),
    (lambda app: app.tenants.close("acme", reason=7), "reason: is of type int"),  # type: ignore[arg-type]
    (lambda app: app.tenants.resume("acme", note=LONG), "note: has 2,001 characters"),
    (lambda app: app.tenants.reopen("acme", note=LONG), "note: has 2,001 characters"),
    (lambda app: app.tenants.pause("acme", reason="x", who=LONG), "who: has 2,001 characters"),
    (lambda app: app.tenants.drain("acme", reason=LONG), "reason: has 2,001 characters"),
    (lambda app: app.tenants.purge("acme", reason=LONG), "reason: has 2,001 characters"),
    (lambda app: app.tenants.purge("acme", queue="Bulk", reason="x"), "queue 'Bulk' is not a legal name"),
    (lambda app: app.tenants.forget("acme", reason=LONG), "reason: has 2,001 characters"),
    (lambda app: app.tenants.list(cursor="a b"), "'a b' is not a cursor"),
    (lambda app: app.tenants.list(cursor=7), "a value of type int is not a cursor"),  # type: ignore[arg-type]
    (lambda app: app.tenants.list(labels={"x": "\x00"}), "label '.x00' is not a legal name"),
    (lambda app: app.tenants.list(labels="x"), "labels: is of type str"),  # type: ignore[arg-type]
    (lambda app: app.tenants.list(limit=0), "limit is 0"),
    (lambda app: app.tenants.declare("acme", labels={"": "x"}), "label '' is not a legal name"),
    (lambda app: app.queues.drain("bulk", reason=LONG), "reason: has 2,001 characters"),
    (lambda app: app.queues.stats("bulk", most=0), "most is 0"),
    (lambda app: app.tasks.pause("note", reason=LONG), "reason: has 2,001 characters"),
    (lambda app: app.as_system(reason=LONG).__enter__(), "cannot be logged; use at most 2,000"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_can_be_no_filter_and_no_text_is_refused_before_any_store_is_asked(
    world: World, app: Fairlane, call: Callable[[Fairlane], object], message: str
) -> None:
    """S3: one ValueError that names the field; it cannot depend on the store, which hears nothing."""
    with pytest.raises(ValueError, match=message):
        call(app)
    assert world.asked == []


def test_a_set_is_refused_before_it_changes_anything(world: World, app: Fairlane) -> None:
    """S3: it may have read by then, but nothing is written."""
    for call in (
        lambda: app.tenants.set("acme", weight=2, note=LONG),
        lambda: app.tenants.set("acme", queue="Bulk", limits=None),
        lambda: app.gates.set("door", limit=2, note="\x7f"),
        lambda: app.gates.reset("door", note=LONG),
        lambda: app.tasks.set("note", note=LONG),
    ):
        with pytest.raises(ValueError, match=r"note: |queue"):
            call()
    assert {"override", "reset", "put"} & set(world.verbs()) == set()


def test_a_reason_of_several_lines_is_fine(app: Fairlane) -> None:
    """S3: newlines and tabs can be shown."""
    app.tenants.pause("acme", reason="ordered twice,\n\tsays Ann" + "x" * 1_900)
    assert app.tenants.get("acme").paused is not None


def test_a_filter_that_does_not_exist_is_a_type_error(app: Fairlane) -> None:
    """A typing error must not count everything."""
    for call in (app.jobs.count, app.jobs.each, app.jobs.aeach):
        with pytest.raises(TypeError, match="'tagg' is not a filter; there are tenant, queue, task"):
            call(tagg="x")  # type: ignore[call-arg]


def test_counts_hold_whatever_can_be_looked_at(app: Fairlane) -> None:
    """It is a mapping, and speaks of itself."""
    counts = app.jobs.count()
    assert isinstance(counts, Counts)
    assert counts["ready"] == 0  # type: ignore[index]
    with pytest.raises(ValueError, match="late"):
        counts["late"]  # type: ignore[index]


async def test_a_handler_counts_what_its_tenant_has(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S9: the running job is among it."""
    await task.using(tags=["x"]).aenqueue("x")
    await task.using(tenant="globex", tags=["x"]).aenqueue("x")
    claim = await world.claim()
    job = app.client.show(claim.job)
    context = Context(tenant=job.tenant, attempt=1, show=lambda: job, fence=1, control=AttemptControl())
    with handling(context):
        assert (await app.jobs.acount(tag="x"))[State.RUNNING] == 1
        assert (await app.jobs.acount(tag="x")).total == 1
    assert world.asked[-1][1].scope == Scope("acme")
