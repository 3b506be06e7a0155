"""Enqueue in the application's own transaction on an apsw connection: its commit decides, nothing else."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

from fairlane.model.errors import (
    SchemaTooNew,
    SchemaTooOld,
    StoreBusy,
    StoreError,
    TenantMismatch,
    Unsupported,
)
from fairlane.model.instants import SECOND
from fairlane.model.job import NewJob
from fairlane.model.lifecycle.admission import RefusalKind
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import QueueRules, Subject, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import EnqueueReply, EnqueueRequest
from fairlane.store.contract.registry import RegisterRequest, WaitRequest, WorkerRecord
from fairlane.store.sqlite import app_transaction, connection
from fairlane.store.sqlite.store import SqliteStore
from tests.contract.world import ALL, World
from tests.oracle.clock import DrivenClock

DEFAULT = Subject(SubjectKind.QUEUE, "default")


async def send_in(world: World, own: object, *jobs: NewJob, **options: Any) -> EnqueueReply:
    """Enqueue a batch in the transaction of a connection."""
    request = EnqueueRequest(**{"scope": ALL, **options}, jobs=jobs)
    return await world.store.jobs.enqueue_in(own, request)


def orders(own: apsw.Connection) -> list[str]:
    """Read the application's own table."""
    return [name for (name,) in own.execute("SELECT name FROM orders ORDER BY rowid")]


# ── commit, rollback, savepoints ─────────────────────────────────────────────


async def test_a_job_becomes_visible_with_the_applications_commit(world: World, own: apsw.Connection) -> None:
    """Nobody sees it before; afterwards it is like any other job, with the store's clock."""
    own.execute("BEGIN")
    own.execute("INSERT INTO orders VALUES ('first')")
    new = world.new(delay=0)
    reply = await send_in(world, own, new)
    assert not await world.is_known(new.id)
    own.execute("COMMIT")
    job = await world.get(new.id)
    assert reply.enqueued[0].job == job
    assert (job.state, job.enqueued_at) == (State.READY, world.now)
    assert (await world.claim_one()).job.id == new.id


async def test_a_job_vanishes_with_the_applications_rollback(world: World, own: apsw.Connection) -> None:
    """Its keys and counts as well: the same job can come in afterwards."""
    new = world.new(idempotency_key="k", dedup_key="d")
    own.execute("BEGIN IMMEDIATE")
    await send_in(world, own, new)
    own.execute("ROLLBACK")
    assert not await world.is_known(new.id)
    assert (await world.send(new)).enqueued[0].is_created


async def test_a_rollback_leaves_the_key_with_the_dead_job(world: World, own: apsw.Connection) -> None:
    """S13: what would have replaced it is gone; the next one replaces it."""
    dead = await world.bring_to(State.DEAD, idempotency_key="k")
    new = world.new(idempotency_key="k", on_duplicate="replace_dead")
    own.execute("BEGIN IMMEDIATE")
    assert (await send_in(world, own, new)).enqueued[0].is_created
    own.execute("ROLLBACK")
    assert (await world.send(world.new(idempotency_key="k"))).enqueued[0].job.id == dead.job.id
    assert (await world.send(new)).enqueued[0].job.correlation_id == str(dead.job.id)


async def test_a_rollback_to_a_savepoint_takes_back_what_came_after_it(
    world: World, own: apsw.Connection
) -> None:
    """Also between two enqueues: caches of the first must not mislead the second."""
    first, taken_back, last = world.new(), world.new(), world.new()
    with own:
        await send_in(world, own, first)
        own.execute("SAVEPOINT step")
        own.execute("INSERT INTO orders VALUES ('lost')")
        await send_in(world, own, taken_back)
        own.execute("ROLLBACK TO step")
        await send_in(world, own, last)
    assert {job.id for job in await world.find_all()} == {first.id, last.id}
    assert orders(own) == []


async def test_a_savepoint_of_the_same_name_as_ours_is_left_alone(world: World, own: apsw.Connection) -> None:
    """Names of savepoints nest."""
    own.execute("SAVEPOINT verb")
    own.execute("INSERT INTO orders VALUES ('kept')")
    await send_in(world, own, world.new())
    own.execute("RELEASE verb")
    assert (orders(own), len(await world.find_all())) == (["kept"], 1)


async def test_a_refused_batch_leaves_the_transaction_as_it_was(world: World, own: apsw.Connection) -> None:
    """All or nothing of the batch, and nothing of what the application did before."""
    await world.put({DEFAULT: QueueRules(limits=Limits(waiting=2, on_full="reject"))})
    with own:
        own.execute("INSERT INTO orders VALUES ('kept')")
        await send_in(world, own, world.new())
        reply = await send_in(world, own, world.new(), world.new(), world.new())
        assert [(one.index, one.kind) for one in reply.refused] == [
            (1, RefusalKind.WAITING_LIMIT),
            (2, RefusalKind.WAITING_LIMIT),
        ]
        assert (await send_in(world, own, world.new())).refused == ()
    assert orders(own) == ["kept"]
    assert len(await world.find_all()) == 2


async def test_a_refused_batch_takes_back_what_it_had_written_already(
    world: World, own: apsw.Connection
) -> None:
    """The second item's queue is counted in the file, for which the first is written before it is refused."""
    await world.put({Subject(SubjectKind.QUEUE, "tight"): QueueRules(max_waiting=1)})
    await world.enqueue(queue="tight")
    with own:
        reply = await send_in(world, own, world.new("globex"), world.new(queue="tight"))
        assert [one.index for one in reply.refused] == [1]
    assert [job.queue for job in await world.find_all()] == ["tight"]


async def test_limits_count_the_jobs_of_the_open_transaction(world: World, own: apsw.Connection) -> None:
    """Those of both batches and those before."""
    await world.put({DEFAULT: QueueRules(limits=Limits(waiting=3), max_waiting=4)})
    await world.enqueue()
    with own:
        assert (await send_in(world, own, world.new(), world.new())).over == ()
        (over,) = (await send_in(world, own, world.new())).over
        assert (over.waiting, over.limit) == (4, 3)
        (full,) = (await send_in(world, own, world.new())).refused
        assert (full.kind, full.waiting) == (RefusalKind.QUEUE_FULL, 4)


async def test_keys_of_the_same_transaction_answer_for_repeats(world: World, own: apsw.Connection) -> None:
    """Idempotency and de-duplication, before anything is committed."""
    first, second = world.new(idempotency_key="k"), world.new(dedup_key="d")
    with own:
        await send_in(world, own, first, second)
        again = await send_in(world, own, world.new(idempotency_key="k"), world.new(dedup_key="d"))
        other = await send_in(world, own, world.new(idempotency_key="k", fingerprint=b"other"))
    assert [(one.job.id, one.is_created) for one in again.enqueued] == [(first.id, False), (second.id, False)]
    assert other.refused[0].kind is RefusalKind.IDEMPOTENCY_MISMATCH
    assert len(await world.find_all()) == 2


async def test_a_repeat_under_the_same_id_is_answered_from_the_transaction(
    world: World, own: apsw.Connection
) -> None:
    """S15: marked as repeated, the id answers; unmarked it is taken."""
    new = world.new()
    with own:
        await send_in(world, own, new)
        assert (await send_in(world, own, new, is_repeated=True)).enqueued[0].is_created
        assert (await send_in(world, own, new)).refused[0].kind is RefusalKind.ID_TAKEN


async def test_a_closed_queue_is_seen_although_it_was_closed_by_another_connection(
    world: World, own: apsw.Connection
) -> None:
    """Policies are read as they are, each time."""
    with own:
        assert (await send_in(world, own, world.new())).refused == ()
    await world.close(SubjectKind.QUEUE, "default")
    with own:
        assert (await send_in(world, own, world.new())).refused[0].kind is RefusalKind.CLOSED


async def test_the_scope_holds_on_a_connection_too(world: World, own: apsw.Connection) -> None:
    """S9: another tenant's job does not come in."""
    with own, pytest.raises(TenantMismatch):
        await send_in(world, own, world.new("acme"), scope=Scope("globex"))


# ── what is refused ──────────────────────────────────────────────────────────


async def test_without_an_open_transaction_nothing_is_stored(world: World, own: apsw.Connection) -> None:
    """It would be committed at once, which is not why a connection is passed."""
    with pytest.raises(StoreError, match="no open transaction"):
        await send_in(world, own, world.new())
    assert await world.find_all() == []


async def test_a_connection_to_another_file_is_refused(world: World, tmp_path: Path) -> None:
    """With both names, and what to do."""
    other = apsw.Connection(str(tmp_path / "mine.db"))
    with (
        other,
        pytest.raises(Unsupported, match=r"mine\.db, but the jobs are in .*fairlane\.db; open an apsw"),
    ):
        await send_in(world, other, world.new())
    other.close()
    memory = apsw.Connection(":memory:")
    with memory, pytest.raises(Unsupported, match="a database in memory"):
        await send_in(world, memory, world.new())


async def test_another_name_of_the_same_file_is_the_same_file(world: World, file: Path, own: object) -> None:
    """A symbolic link leads to the same device and inode."""
    link = file.with_name("link.db")
    link.symlink_to(file)
    other = apsw.Connection(str(link))
    with other:
        await send_in(world, other, world.new())
    other.close()
    assert len(await world.find_all()) == 1


async def test_a_file_that_was_replaced_meanwhile_is_refused(
    world: World, file: Path, own: apsw.Connection
) -> None:
    """Nobody would find what is written to the old one."""
    with own:
        await send_in(world, own, world.new())
    moved = file.with_name("moved.db")
    os.rename(file, moved)  # noqa: PTH104 (nothing is waited for)
    apsw.Connection(str(file)).close()
    with own, pytest.raises(Unsupported, match="but the jobs are in"):
        await send_in(world, own, world.new())
    os.replace(moved, file)  # noqa: PTH105 (as above)


async def test_a_file_without_a_schema_is_refused(file: Path) -> None:
    """And stays as it is: an application's transaction must not migrate."""
    store = SqliteStore(f"sqlite:///{file}")
    own = apsw.Connection(str(file))
    own.execute("CREATE TABLE t (a)")
    own.execute("DROP TABLE t")
    request = EnqueueRequest(scope=ALL, jobs=())
    with own, pytest.raises(SchemaTooOld, match="migrate"):
        await store.jobs.enqueue_in(own, request)
    assert own.execute("SELECT count(*) FROM sqlite_schema").fetchall() == [(0,)]
    own.close()


async def test_a_file_of_a_newer_version_is_refused(world: World, own: apsw.Connection) -> None:
    """As it would be if the store had to open it now."""
    (version,) = own.execute("PRAGMA user_version").fetchall()[0]
    own.execute("PRAGMA user_version = 99")
    with own, pytest.raises(SchemaTooNew, match="upgrade"):
        await send_in(world, own, world.new())
    own.execute(f"PRAGMA user_version = {version}")


# ── the connection stays the application's ───────────────────────────────────


async def test_what_the_application_set_on_its_connection_is_kept_and_does_not_disturb(
    world: World, own: apsw.Connection
) -> None:
    """Rows as dicts, a trace, a cursor class: the application's settings are for its own statements."""
    seen: list[str] = []

    class Cursor(apsw.Cursor):
        """The application's own."""

    def row(cursor: apsw.Cursor, values: tuple[Any, ...]) -> Any:
        return {column[0]: value for column, value in zip(cursor.get_description(), values, strict=True)}

    def trace(cursor: apsw.Cursor, statement: str, bindings: object) -> bool:
        seen.append(statement)
        return True

    own.row_trace, own.exec_trace, own.cursor_factory = row, trace, Cursor
    with own:
        own.execute("INSERT INTO orders VALUES ('x')")
        await send_in(world, own, world.new(idempotency_key="k"))
        await send_in(world, own, world.new(idempotency_key="k"))
    rows: list[Any] = own.execute("SELECT name FROM orders").fetchall()
    assert rows == [{"name": "x"}]
    assert (own.row_trace, own.exec_trace, own.cursor_factory) == (row, trace, Cursor)
    assert own.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 0
    assert [one for one in seen if "meta" in one or "body" in one] == []


async def test_a_statement_that_is_being_read_goes_on(world: World, own: apsw.Connection) -> None:
    """The application may enqueue a job for each row of its own query."""
    own.execute("INSERT INTO orders VALUES ('a'), ('b'), ('c')")
    with own:
        for (name,) in own.execute("SELECT name FROM orders"):
            await send_in(world, own, world.new(correlation_id=name))
    assert sorted(job.correlation_id for job in await world.find_all()) == ["a", "b", "c"]


# ── others at the same time ──────────────────────────────────────────────────


async def test_a_transaction_that_read_first_and_is_outdated_says_so_at_once(
    world: World, own: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No retry in the same transaction can help; all of it must be repeated."""
    monkeypatch.setattr(app_transaction, "busy_wait", lambda: lambda tries: pytest.fail("waited in vain"))
    own.execute("BEGIN")
    assert orders(own) == []
    await world.enqueue()
    with pytest.raises(StoreBusy, match="BEGIN IMMEDIATE") as caught:
        await send_in(world, own, world.new())
    assert not caught.value.retry_safe
    own.execute("ROLLBACK")
    with own:
        await send_in(world, own, world.new())
    assert len(await world.find_all()) == 2


async def test_a_writer_that_does_not_end_makes_it_busy_in_bounded_time(
    world: World, own: apsw.Connection, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever busy timeout the application's connection has: here none."""
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.05)
    other = apsw.Connection(str(file))
    other.execute("BEGIN IMMEDIATE")
    own.execute("BEGIN")
    with pytest.raises(StoreBusy) as caught:
        await send_in(world, own, world.new())
    assert caught.value.retry_safe
    other.execute("ROLLBACK")
    await send_in(world, own, world.new())
    own.execute("COMMIT")
    other.close()
    assert len(await world.find_all()) == 1


async def test_the_stores_own_writer_and_applications_take_turns(
    world: World, file: Path, own: object
) -> None:
    """Three threads with their own transactions, while the store writes too: every job is stored once."""
    batches = [[world.new() for _ in range(3)] for _ in range(60)]

    def work(number: int) -> None:
        connection = apsw.Connection(str(file))
        for jobs in batches[number::4]:
            connection.execute("BEGIN")
            asyncio.run(send_in(world, connection, *jobs))
            connection.execute("COMMIT")
        connection.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for jobs in batches[3::4]:
        await world.send(*jobs)
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert {job.id for job in await world.find_all(page=200)} == {job.id for jobs in batches for job in jobs}


async def test_a_waiting_worker_hears_of_a_commit_by_its_poll(world: World, own: apsw.Connection) -> None:
    """No hint is sent: nobody but the application knows when it has committed."""
    record = WorkerRecord(id="w1", host="h", pid=1, version="0", queues=("default",), slots=1)
    await world.store.registry.register(RegisterRequest(scope=ALL, record=record, renew_every=4 * SECOND))
    request = WaitRequest(scope=ALL, worker="w1", queues=("default",), at_most=30 * SECOND)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(world.store.registry.wait(request))
        with own:
            await send_in(world, own, world.new())
        assert await waiting
    assert len(await world.claim(1)) == 1


# ── one library per file ─────────────────────────────────────────────────────


async def test_the_store_opens_beside_a_connection_that_was_there_first(file: Path) -> None:
    """The application's apsw is the store's apsw, so nothing is destroyed."""
    first = SqliteStore(f"sqlite:///{file}")
    await World(first, DrivenClock()).find_all()
    await first.upkeep.aclose()
    own = apsw.Connection(str(file))
    assert own.execute("SELECT count(*) FROM body").fetchall() == [(0,)]
    second = SqliteStore(f"sqlite:///{file}")
    assert await World(second, DrivenClock()).find_all() == []
    own.close()
    await second.upkeep.aclose()


def test_the_standard_library_is_refused_while_only_the_applications_connection_is_open(file: Path) -> None:
    """The store is closed, or was never opened in this process; the danger is the same."""
    store = SqliteStore(f"sqlite:///{file}")
    asyncio.run(_open_and_close(store))
    sqlite3.connect(file).close()
    own = apsw.Connection(str(file))
    with own:
        asyncio.run(send_in(World(store, DrivenClock()), own, World(store, DrivenClock()).new()))
    with pytest.raises(StoreError, match=r"fairlane\.db belongs to Fairlane"):
        sqlite3.connect(file)
    own.close()
    sqlite3.connect(file).close()


def test_a_file_that_two_libraries_have_open_is_refused(file: Path) -> None:
    """The standard library's connection is refused also if there is an apsw connection."""
    store = SqliteStore(f"sqlite:///{file}")
    asyncio.run(_open_and_close(store))
    other = sqlite3.connect(file)
    assert other.execute("SELECT count(*) FROM body").fetchall() == [(0,)]
    own = apsw.Connection(str(file))
    with pytest.raises(StoreError, match="another SQLite library"):
        asyncio.run(_open_and_close(store))
    other.close()
    asyncio.run(_open_and_close(store))
    own.close()


async def _open_and_close(store: SqliteStore) -> None:
    await World(store, DrivenClock()).find_all()
    await store.upkeep.aclose()
