"""Refusals of a foreign tenant, `as_system`, full queues: noted, folded, sent later (S60, S76)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from fairlane import Context, Fairlane, Limits, Queue, QueueFull, StoreUnavailable, Task, TenantMismatch
from fairlane.app.ambient import acting_as
from fairlane.app.journal_buffer import MOST_HELD, JournalBuffer
from fairlane.app.task.context import AttemptControl, ambient_of
from fairlane.model.instants import SECOND
from fairlane.model.journal.entries import NewEntry
from fairlane.store.contract import Store
from tests.app.test_acting import journal
from tests.app.world import World, note


def refused(app: Fairlane, tenant: str = "globex") -> None:
    """Name a foreign tenant."""
    with pytest.raises(TenantMismatch):
        app.jobs.find(tenant=tenant)


def as_handler(app: Fairlane, task: Task[..., None]) -> Any:
    """Surround a block with a handler of this application's worker."""
    job = task.enqueue("running")
    context = Context(tenant=job.tenant, attempt=1, show=lambda: job, fence=1, control=AttemptControl())
    return acting_as(ambient_of(context, journals=app.client.journals))


# ── what is noted ────────────────────────────────────────────────────────────


def test_a_refusal_is_in_the_audit_and_an_event(world: World, app: Fairlane, task: Task[..., None]) -> None:
    """With who asked for whom; both are for operators alone, since they name a neighbour."""
    with as_handler(app, task):
        refused(app)
    app.close()
    ((kind, tenant, subject, body),) = journal(world)
    whom = "tenant globex from tenant acme, task note"
    assert (kind, tenant, subject) == ("tenant.refused", None, whom)
    assert body["actor"] == "task note"
    assert body["details"] == {"tenant": "acme", "job": str(world.one().id)}
    ((kind, tenant, subject, body),) = journal(world, "events")
    assert (kind, tenant, subject) == ("tenant_mismatch", None, whom)
    assert (body["tenant"], body["target"], body["task"]) == ("acme", "globex", "note")


def test_a_refusal_inside_a_block_names_who_acts(world: World, app: Fairlane) -> None:
    """There is no task."""
    app.jobs.find()
    with app.tenant("acme"), app.acting_as("ann"):
        refused(app)
        with pytest.raises(TenantMismatch), app.tenant("initech"):
            pass
    app.close()
    assert [(subject, body["actor"]) for _, _, subject, body in journal(world)] == [
        ("tenant globex from tenant acme", "ann"),
        ("tenant initech from tenant acme", "ann"),
    ]


def test_acting_for_all_is_audited_with_its_reason(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """It is no event: it was allowed."""
    with app.acting_as("ann"), app.as_system(reason="support asked"):
        app.jobs.find()
    with as_handler(app, task), app.as_system(reason="nightly"):
        pass
    app.close()
    found = {(subject, body["actor"], body["note"]) for _, _, subject, body in journal(world)}
    assert found == {
        ("all tenants", "ann", "support asked"),
        ("all tenants from tenant acme, task note", "task note", "nightly"),
    }
    assert {kind for kind, *_ in journal(world)} == {"as_system"}
    assert journal(world, "events") == []


def test_jobs_that_a_full_queue_refuses_are_an_event(world: World) -> None:
    """Counted by queue; a tenant's own limit makes none."""
    app = world.app(queues=[Queue("bulk")])
    app.queues.set("bulk", max_waiting=0)
    app.queues.set("default", limits=Limits(waiting=0, on_full="reject"))
    bulk = app.task(name="bulk", queue="bulk")(note).using(tenant="acme")
    for _ in range(2):
        with pytest.raises(QueueFull):
            app.enqueue_many([bulk.bind(1), bulk.bind(2)])
    app.close()
    found = [(kind, tenant, subject, body) for kind, tenant, subject, body in journal(world, "events")]
    body = {"queue": "bulk", "waiting": 0, "limit": 0}
    assert found[0] == ("queue_full", None, "bulk", body)
    entries = world.oracle.journal._core.books.journals["events"].pending
    assert sum(one.entry.count for one in entries) == 4


# ── when it is sent ──────────────────────────────────────────────────────────


def test_it_is_sent_with_a_later_call_and_the_rest_of_ten_seconds_as_one(world: World, app: Fairlane) -> None:
    """The first at once, the others with their count."""
    clock = world.drive(app)
    with app.tenant("acme"):
        for _ in range(5):
            refused(app)
        app.jobs.find()
        app.jobs.find()
        assert [one.entry.count for one in pending(world)] == [1]
        clock.now += 11 * SECOND
        app.jobs.find()
        app.jobs.find()
    assert [one.entry.count for one in pending(world)] == [1, 4]


def pending(world: World) -> list[Any]:
    """Return what waits in the audit."""
    return world.oracle.journal._core.books.journals["audit"].pending


async def test_a_loop_that_ends_sends_what_is_left(world: World, app: Fairlane) -> None:
    """Also what is still counted."""
    await app.jobs.afind()
    with app.tenant("acme"):
        for _ in range(3):
            with pytest.raises(TenantMismatch):
                await app.jobs.afind(tenant="globex")
    await app.aclose()
    assert [one.entry.count for one in pending(world)] == [1, 2]


def test_a_process_that_never_asked_a_store_opens_none_for_it(world: World, app: Fairlane) -> None:
    """It is as well as can be."""
    with app.tenant("acme"), pytest.raises(TenantMismatch), app.tenant("globex"):
        pass
    app.close()
    assert world.opened == 0


def test_an_error_of_the_store_is_nobody_s_and_it_is_sent_next_time(world: World, app: Fairlane) -> None:
    """Nothing is lost by it."""
    app.jobs.find()
    with app.tenant("acme"):
        refused(app)
    world.fail_before = [None, StoreUnavailable("gone"), StoreUnavailable("gone")]
    app.jobs.find()
    app.jobs.find()
    world.fail_before = []
    app.close()
    assert len(pending(world)) == 1


def test_an_actor_that_cannot_be_stored_hides_no_refusal(
    world: World, app: Fairlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller gets the error that it should get."""
    monkeypatch.setenv("FAIRLANE_ACTOR", "x" * 2_001)
    with app.tenant("acme"):
        refused(app)
    with app.as_system(reason="x"):
        pass
    app.close()
    assert journal(world) == []


# ── its bounds ───────────────────────────────────────────────────────────────


class Elapsed:
    """A clock that tests set."""

    now = 0

    def __call__(self) -> int:
        """Return the time."""
        return self.now


async def test_it_holds_so_many_kinds_and_subjects_and_no_more(world: World, app: Fairlane) -> None:
    """What is more is dropped; it does not grow."""
    clock = Elapsed()
    buffer = JournalBuffer(clock)
    assert buffer.is_empty
    for number in range(2 * MOST_HELD):
        for _ in range(3):
            buffer.note("audit", NewEntry(kind="k", subject=str(number)))
    assert buffer.is_due
    store: Store = app.client.store
    await buffer.send(store)
    assert len(pending(world)) == MOST_HELD
    assert not buffer.is_due
    assert not buffer.is_empty
    clock.now = 10 * SECOND
    assert buffer.is_due
    await buffer.send(store)
    assert sum(one.entry.count for one in pending(world)) == 3 * MOST_HELD
    assert buffer.is_empty


async def test_threads_note_at_the_same_time(world: World, app: Fairlane) -> None:
    """Every count arrives."""
    buffer = JournalBuffer(Elapsed())

    def note_many() -> None:
        for _ in range(200):
            buffer.note("audit", NewEntry(kind="k"))

    threads = [threading.Thread(target=note_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    await buffer.send(app.client.store, is_last=True)
    assert sum(one.entry.count for one in pending(world)) == 800


async def test_a_lock_that_nobody_will_release_stops_nobody(world: World, app: Fairlane) -> None:
    """As in a process that was forked while another thread held it."""
    buffer = JournalBuffer(Elapsed())
    buffer._lock.acquire()
    buffer.note("audit", NewEntry(kind="k"))
    await buffer.send(app.client.store)
    assert pending(world) == []
