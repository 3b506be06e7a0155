"""Jobs in the application's own transaction: `connection=` on tasks and batches, plain and async."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from fairlane import (
    Fairlane,
    InvalidJob,
    SensitivePayload,
    State,
    StoreError,
    Task,
    TenantMismatch,
    Unsupported,
    WaitingLimitReached,
)
from fairlane.app.portal import run_here
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import QueueRules, Subject, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.policies import PutRequest
from tests.app.test_portal import in_a_child
from tests.app.world import World, note


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Fairlane]:
    """An application on a SQLite store whose file is there."""
    with Fairlane(f"sqlite:///{tmp_path}/fairlane.db") as made:
        made.jobs.count()
        yield made


@pytest.fixture
def own(app: Fairlane, tmp_path: Path) -> Iterator[apsw.Connection]:
    """The application's own connection to that file, with a table of its own."""
    connection = apsw.Connection(f"{tmp_path}/fairlane.db")
    connection.execute("CREATE TABLE orders (name TEXT)")
    yield connection
    connection.close()


@pytest.fixture
def task(app: Fairlane) -> Task[..., None]:
    """A task that takes anything, for tenant acme."""
    return app.task(name="note")(note).using(tenant="acme")


def ready(app: Fairlane) -> int:
    """Count the ready jobs that everybody sees."""
    return app.jobs.count()[State.READY]


def test_a_job_and_the_applications_own_rows_commit_together(
    app: Fairlane, own: apsw.Connection, task: Task[..., None]
) -> None:
    """The job that is given is as it will be."""
    with own:
        own.execute("INSERT INTO orders VALUES ('first')")
        job = task.using(connection=own).enqueue("x")
        assert (job.state, job.created, job.tenant) == (State.READY, True, "acme")
        assert ready(app) == 0
    assert app.jobs.get(job.id) == job.refresh()
    assert ready(app) == 1


def test_a_job_and_the_applications_own_rows_vanish_together(
    app: Fairlane, own: apsw.Connection, task: Task[..., None]
) -> None:
    """An error in the application's block rolls both back."""

    def order() -> None:
        with own:
            own.execute("INSERT INTO orders VALUES ('first')")
            task.using(connection=own).enqueue("x")
            raise LookupError

    with pytest.raises(LookupError):
        order()
    assert ready(app) == 0
    assert own.execute("SELECT count(*) FROM orders").fetchall() == [(0,)]


async def test_the_async_twin_runs_in_the_callers_thread_too(
    app: Fairlane, own: apsw.Connection, task: Task[..., None]
) -> None:
    """A connection belongs to the thread of its transaction."""
    threads: set[int] = set()
    own.set_update_hook(lambda *_: threads.add(threading.get_ident()))
    async with app:
        with own:
            first = await task.using(connection=own).aenqueue("x")
            (second,) = await app.aenqueue_many([task.bind("y")], connection=own)
        assert threads == {threading.get_ident()}
        assert {job.id for job in await app.jobs.afind()} == {first.id, second.id}
        await asyncio.to_thread(app.close)


def test_a_plain_call_starts_no_thread_and_opens_no_file(
    own: apsw.Connection, task: Task[..., None], app: Fairlane
) -> None:
    """All of it happens on the caller's connection."""
    app.close()
    before = set(threading.enumerate())
    with own:
        task.using(connection=own).enqueue("x")
    assert set(threading.enumerate()) == before


def test_a_batch_goes_whole_into_the_transaction(
    app: Fairlane, own: apsw.Connection, task: Task[..., None]
) -> None:
    """By the batch's own word, or by that of all its calls."""
    inside = task.using(connection=own)
    with own:
        app.enqueue_many([task.bind(1), inside.bind(2)], connection=own)
        app.enqueue_many([inside.bind(3), inside.bind(4)])
        assert app.enqueue_many([], connection=own) == []
        assert ready(app) == 0
    assert ready(app) == 4


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_calls_of_one_batch_must_agree_on_their_connection(
    app: Fairlane, own: apsw.Connection, task: Task[..., None], order: tuple[int, int]
) -> None:
    """Some of them elsewhere could not be all or nothing; whichever comes first."""
    calls = [task.bind(1), task.using(connection=own).bind(2)]
    with own, pytest.raises(InvalidJob) as caught:
        app.enqueue_many([calls[n] for n in order])
    assert [(one.field, one.code) for one in caught.value.problems] == [("connection", "conflict")]
    with closing(apsw.Connection("")) as other, pytest.raises(InvalidJob, match="connection: is not that of"):
        app.enqueue_many(calls, connection=other)


def test_forms_and_policies_hold_as_without_a_connection(
    app: Fairlane, own: apsw.Connection, task: Task[..., None]
) -> None:
    """The same errors, and the transaction goes on."""
    rules = {Subject(SubjectKind.QUEUE, "default"): QueueRules(limits=Limits(waiting=1, on_full="reject"))}
    app.client.portal.run(_put(app, rules))
    inside = task.using(connection=own)
    with own:
        with pytest.raises(InvalidJob, match="tenant"):
            inside.using(tenant="a b").enqueue("x")
        inside.enqueue("x")
        with pytest.raises(WaitingLimitReached):
            inside.enqueue("y")
        with app.tenant("globex"), pytest.raises(TenantMismatch):
            inside.enqueue("z")
        own.execute("INSERT INTO orders VALUES ('kept')")
    assert ready(app) == 1
    assert own.execute("SELECT name FROM orders").fetchall() == [("kept",)]


async def _put(app: Fairlane, rules: Any) -> None:
    await app.client.store.policies.put(PutRequest(scope=Scope.all(), rules=rules))


def test_the_ambient_tenant_and_sensitive_values_count(
    app: Fairlane, own: apsw.Connection, tmp_path: Path
) -> None:
    """As in the plain path."""
    strict = Fairlane(f"sqlite:///{tmp_path}/fairlane.db", payload={"sensitive": "reject"})
    plain = strict.task(name="plain")(note)
    with own:
        with strict.tenant("globex"):
            assert plain.using(connection=own).enqueue("x").tenant == "globex"
        with pytest.raises(SensitivePayload):
            plain.using(connection=own).enqueue({"password": "hunter2-hunter2"})
    assert ready(app) == 1


def test_an_idempotent_repeat_in_the_transaction_answers_with_its_first_job(
    own: apsw.Connection, task: Task[..., None]
) -> None:
    """`created` is then False."""
    once = task.using(connection=own, idempotency_key="k")
    with own:
        first, second = once.enqueue("x"), once.enqueue("x")
    assert (first.id, first.created, second.created) == (second.id, True, False)


def test_what_cannot_be_joined_says_what_to_use_instead(
    app: Fairlane, own: apsw.Connection, task: Task[..., None]
) -> None:
    """A connection of another library, and one without a transaction."""
    with (
        closing(sqlite3.connect(":memory:")) as other,
        pytest.raises(Unsupported, match=r"sqlite3\.Conn.*outbox"),
    ):
        task.using(connection=other).enqueue("x")
    with pytest.raises(StoreError, match="no open transaction"):
        task.using(connection=own).enqueue("x")
    assert ready(app) == 0


def test_a_store_that_cannot_join_says_so(world: World) -> None:
    """The oracle has no connections."""
    task = world.app().task(name="note")(note)
    with pytest.raises(Unsupported, match="outbox"):
        task.using(connection=object()).enqueue("x")
    assert world.stored() == []


def test_an_asynchronous_connection_needs_the_async_twin() -> None:
    """A plain caller has no loop in which it could be waited for."""

    async def waits() -> None:
        await asyncio.sleep(0)

    with pytest.raises(Unsupported, match="await the async twin"):
        run_here(waits())


def test_a_connection_in_the_middle_of_a_fork_is_refused(
    app: Fairlane, own: apsw.Connection, task: Task[..., None]
) -> None:
    """A forked child has inherited the file without its locks."""
    with own:
        task.using(connection=own).enqueue("x")
    assert in_a_child(lambda: _is_refused(own, task)) == 0


def _is_refused(own: apsw.Connection, task: Task[..., None]) -> bool:
    with own, pytest.raises(StoreError, match="forked"):
        task.using(connection=own).enqueue("x")
    return True
