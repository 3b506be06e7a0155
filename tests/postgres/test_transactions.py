"""Enqueue in the application's own transaction, on every kind of connection: its commit decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any
from uuid import uuid4

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from fairlane.app.portal import run_here
from fairlane.model.errors import StoreBusy, StoreError, TenantMismatch, Unsupported
from fairlane.model.instants import SECOND
from fairlane.model.job import NewJob
from fairlane.model.lifecycle.admission import RefusalKind
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import QueueRules, Subject, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import EnqueueReply, EnqueueRequest
from fairlane.store.contract.registry import WaitRequest
from fairlane.store.postgres import wake
from fairlane.store.postgres.connection import StatementRunner
from fairlane.store.postgres.jobs.admission import BatchAdmission
from fairlane.store.postgres.statements import load
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL, PAYLOAD, World
from tests.postgres.own import KINDS, PLAIN, Own
from tests.servers.postgres import shared_url
from tests.servers.schemas import url_of

DEFAULT = Subject(SubjectKind.QUEUE, "default")


@pytest.fixture(params=KINDS)
async def own(request: pytest.FixtureRequest) -> AsyncIterator[Own]:
    """The application's own connection, of each kind."""
    async with KINDS[request.param]() as own:
        yield own


def plain_job() -> NewJob:
    """Return a job that no world made."""
    return NewJob(id=uuid4(), tenant="acme", queue="default", task="t", payload=PAYLOAD, checksum=0)


async def send_on(world: World, connection: Any, *jobs: NewJob, **options: Any) -> EnqueueReply:
    """Enqueue a batch in the transaction of a connection."""
    request = EnqueueRequest(**{"scope": ALL, **options}, jobs=jobs)
    return await world.store.jobs.enqueue_in(connection, request)


async def send_in(world: World, own: Own, *jobs: NewJob, **options: Any) -> EnqueueReply:
    """Enqueue a batch in the transaction of the application's connection."""
    return await send_on(world, own.connection, *jobs, **options)


class _Interrupted:
    """A link before one of whose statements something else happens, once."""

    def __init__(self, link: StatementRunner, before: str, act: Callable[[], Awaitable[object]]) -> None:
        self._link = link
        self._before = before
        self._act: Callable[[], Awaitable[object]] | None = act

    async def fetch(self, statement: str, *values: Any) -> Sequence[Any]:
        act = self._act
        if act is not None and statement == self._before:
            self._act = None
            await act()
        return await self._link.fetch(statement, *values)


async def test_a_key_that_is_freed_between_two_looks_is_taken(world: World) -> None:
    """S14: a key that was neither free nor anybody's is tried again; else two would come in under it."""
    assert isinstance(world.store, PostgresStore)
    server = world.store._server
    await world.enqueue(dedup_key="sync")
    claim = await world.claim_one()
    request = EnqueueRequest(scope=ALL, jobs=(world.new(dedup_key="sync"),))
    async with server.transaction() as link:
        holders = load("enqueue", server.schema).dedup_holders
        interrupted = _Interrupted(link, holders, lambda: world.settle(claim))
        reply = await BatchAdmission(interrupted, server.schema, server.now(), request).run()
    assert reply.enqueued[0].is_created
    (again,) = (await world.send(world.new(dedup_key="sync"))).enqueued
    assert not again.is_created
    assert again.job.id == reply.enqueued[0].job.id


async def test_a_dead_job_is_kept_for_whoever_looked_at_it_first(world: World) -> None:
    """S13: from the look at its key until the new job is committed, nobody else replaces it."""
    assert isinstance(world.store, PostgresStore)
    server = world.store._server
    await world.bring_to(State.DEAD, idempotency_key="k")
    first, second = (world.new(idempotency_key="k", on_duplicate="replace_dead") for _ in range(2))
    others: list[asyncio.Task[EnqueueReply]] = []

    async with server.transaction() as link:

        async def let_another_try() -> None:
            others.append(asyncio.create_task(world.send(second)))
            waiting = "SELECT FROM pg_locks WHERE NOT granted"
            while not others[0].done() and not await link.fetch(waiting):
                pass

        interrupted = _Interrupted(link, load("enqueue", server.schema).admission_facts, let_another_try)
        request = EnqueueRequest(scope=ALL, jobs=(first,))
        mine = (await BatchAdmission(interrupted, server.schema, server.now(), request).run()).enqueued[0]
    other = (await others[0]).enqueued[0]
    assert (mine.job.id, mine.is_created) == (first.id, True)
    assert (other.job.id, other.is_created) == (first.id, False)
    assert await world.states() == {State.DEAD: 1, State.READY: 1}


# ── commit, rollback, savepoints ─────────────────────────────────────────────


async def test_a_job_becomes_visible_with_the_applications_commit(world: World, own: Own) -> None:
    """Not before, by nobody; then it is as any other job, at the instant of the store's clock."""
    await own.begin()
    new = world.new(tags=("a", "b"), metadata=b'{"x":1}', correlation_id="c", created_by="me")
    reply = await send_in(world, own, new)
    assert not await world.is_known(new.id)
    assert await world.claim(1) == []
    await own.commit()
    job = await world.get(new.id)
    assert reply.enqueued[0].job == job
    assert (job.state, job.enqueued_at) == (State.READY, world.now)
    assert (await world.claim_one()).job.id == new.id


async def test_a_job_vanishes_with_the_applications_rollback(world: World, own: Own) -> None:
    """Its keys and counts as well: the same job can come in afterwards."""
    new = world.new(idempotency_key="k", dedup_key="d")
    await own.begin()
    await send_in(world, own, new)
    await own.rollback()
    assert not await world.is_known(new.id)
    assert (await world.send(new)).enqueued[0].is_created


async def test_a_rollback_to_a_savepoint_takes_back_what_came_after_it(world: World, own: Own) -> None:
    """What came before stays."""
    first, second = world.new(), world.new()
    await own.begin()
    await send_in(world, own, first)
    await own.run("SAVEPOINT fairlane")  # a name like ours disturbs nobody
    await send_in(world, own, second)
    await own.run("ROLLBACK TO SAVEPOINT fairlane")
    await own.commit()
    assert await world.is_known(first.id)
    assert not await world.is_known(second.id)


async def test_a_refused_batch_leaves_the_transaction_as_it_was(world: World, own: Own) -> None:
    """Nothing of the batch is in it, keys included, and it can go on."""
    await world.put({DEFAULT: QueueRules(limits=Limits(waiting=1, on_full="reject"))})
    kept = world.new()
    await own.begin()
    await send_in(world, own, kept)
    reply = await send_in(world, own, world.new(idempotency_key="k"), world.new())
    assert [refusal.kind for refusal in reply.refused] == [RefusalKind.WAITING_LIMIT] * 2
    await own.commit()
    assert [job.id for job in await world.find_all()] == [kept.id]


async def test_keys_of_the_same_transaction_answer_for_repeats(world: World, own: Own) -> None:
    """S13, S14: what the transaction has stored is known to it."""
    first = world.new(idempotency_key="k", dedup_key="d")
    await own.begin()
    await send_in(world, own, first)
    repeat = (await send_in(world, own, world.new(idempotency_key="k"))).enqueued[0]
    duplicate = (await send_in(world, own, world.new(dedup_key="d"))).enqueued[0]
    again = (await send_in(world, own, first, is_repeated=True)).enqueued[0]
    await own.commit()
    assert {one.job.id for one in (repeat, duplicate, again)} == {first.id}
    assert [one.is_created for one in (repeat, duplicate, again)] == [False, False, True]
    assert len(await world.find_all()) == 1


async def test_an_error_leaves_the_transaction_usable(world: World, own: Own) -> None:
    """What the server cannot store is refused, and the transaction goes on without it."""
    kept = world.new()
    await own.begin()
    with pytest.raises(StoreError):
        await send_in(world, own, world.new(created_by="nul \0"))
    await send_in(world, own, kept)
    await own.commit()
    assert [job.id for job in await world.find_all()] == [kept.id]


# ── what is refused ──────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["psycopg", "psycopg_async", "asyncpg", "django"])
async def test_without_an_open_transaction_nothing_is_stored(world: World, kind: str) -> None:
    """It would be committed at once."""
    async with KINDS[kind]() as own:
        with pytest.raises(StoreError, match="no open transaction"):
            await send_in(world, own, world.new())
    assert await world.find_all() == []


async def test_an_engine_that_commits_every_statement_is_refused(world: World) -> None:
    """The same through SQLAlchemy."""
    engine = create_engine(shared_url().replace("://", "+psycopg://"), isolation_level="AUTOCOMMIT")
    with Session(engine) as session, pytest.raises(StoreError, match="no open transaction"):
        await send_on(world, session, world.new())
    engine.dispose()
    assert await world.find_all() == []


async def test_a_connection_of_psycopg_that_begins_by_itself_is_joined(world: World) -> None:
    """Its next commit decides, although nothing was done before."""
    new = world.new()
    with psycopg.connect(shared_url()) as connection:
        await send_on(world, connection, new)
        assert not await world.is_known(new.id)
    assert await world.is_known(new.id)


async def test_a_failed_transaction_says_that_it_must_be_rolled_back(world: World, own: Own) -> None:
    """PostgreSQL takes nothing more in it."""
    await own.begin()
    with pytest.raises(Exception, match="division by zero"):
        await own.run("SELECT 1/0")
    with pytest.raises(StoreError, match="roll it back"):
        await send_in(world, own, world.new())
    await own.rollback()


async def test_a_connection_to_another_database_is_refused(world: World, admin: psycopg.Connection) -> None:
    """The jobs would never be seen."""
    admin.execute("CREATE DATABASE elsewhere")
    try:
        with (
            psycopg.connect(shared_url(), dbname="elsewhere") as connection,
            pytest.raises(Unsupported, match=r"elsewhere.*outbox"),
        ):
            await send_on(world, connection, world.new())
    finally:
        admin.execute("DROP DATABASE elsewhere")


async def test_a_schema_that_holds_no_fairlane_is_refused(own: Own) -> None:
    """The message says what to do."""
    store = PostgresStore(url_of("nothing_here"))
    await own.begin()
    world = World(store, None)  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="fairlane migrate"):
        await send_in(world, own, plain_job())
    await own.run("SELECT 1")
    await own.rollback()
    await store.upkeep.aclose()


async def test_an_engine_of_another_database_is_refused(world: World) -> None:
    """SQLAlchemy reaches more than can be joined."""
    with Session(create_engine("sqlite://")) as session, pytest.raises(Unsupported, match=r"sqlite.*outbox"):
        await send_on(world, session, world.new())


async def test_the_scope_holds_on_a_connection_too(world: World, own: Own) -> None:
    """S9: it is looked at before anything else."""
    await own.begin()
    with pytest.raises(TenantMismatch):
        await send_in(world, own, world.new(tenant="other"), scope=Scope("acme"))
    await own.rollback()


async def test_an_asynchronous_connection_cannot_be_used_without_awaiting(world: World) -> None:
    """The plain call says which twin to await."""
    async with KINDS["asyncpg"]() as own:
        await own.begin()
        request = EnqueueRequest(scope=ALL, jobs=(world.new(),))
        with pytest.raises(Unsupported, match="await"):
            run_here(world.store.jobs.enqueue_in(own.connection, request))
        with pytest.raises((StoreError, asyncpg.InterfaceError)):
            await own.rollback()
        own.connection.terminate()


@pytest.mark.parametrize("kind", PLAIN)
async def test_a_plain_connection_needs_no_event_loop(schema: str, kind: str) -> None:
    """Callers without one run it to its end themselves."""
    store = PostgresStore(url_of(schema))

    async def one() -> None:
        async with KINDS[kind]() as own:
            await own.begin()
            await store.jobs.enqueue_in(own.connection, EnqueueRequest(scope=ALL, jobs=(plain_job(),)))
            await own.rollback()

    await asyncio.to_thread(run_here, one())


# ── who waits for whom ───────────────────────────────────────────────────────


async def test_an_open_transaction_blocks_nobody_else(world: World, own: Own) -> None:
    """S13, S63: others enqueue, claim, settle and cancel in the same queue, for the same tenant and task."""
    await own.begin()
    late = world.new()
    await send_in(world, own, late)
    async with asyncio.timeout(60):  # who waits for a lock is told after five
        ids = [(await world.enqueue()).id for _ in range(20)]
        for id in ids[:10]:
            claim = await world.claim_one()
            assert claim.job.id == id
            await world.settle(claim)
        await world.cancel(*ids[10:])
        assert await world.claim(1) == []
    await own.commit()
    assert (await world.claim_one()).job.id == late.id


async def test_the_same_key_waits_for_an_open_transaction_and_nobody_else_does(
    world: World, own: Own
) -> None:
    """S13: it is answered when the first is committed."""
    first = world.new(idempotency_key="k")
    await own.begin()
    await send_in(world, own, first)
    async with asyncio.TaskGroup() as tasks:
        repeat = tasks.create_task(world.send(world.new(idempotency_key="k")))
        async with asyncio.timeout(60):  # as above
            assert (await world.send(world.new(idempotency_key="another"))).enqueued[0].is_created
        assert not repeat.done()
        await own.commit()
    one = repeat.result().enqueued[0]
    assert (one.job.id, one.is_created) == (first.id, False)


@pytest.mark.parametrize("is_committed", [True, False])
async def test_a_dead_job_that_an_open_transaction_replaces_is_waited_for(
    world: World, own: Own, is_committed: bool
) -> None:
    """S13: whoever replaces it too gets the new job, or replaces it after a rollback; nobody else waits."""
    dead = await world.bring_to(State.DEAD, idempotency_key="k")
    first, second = (world.new(idempotency_key="k", on_duplicate="replace_dead") for _ in range(2))
    await own.begin()
    reply = await send_in(world, own, first)
    assert (reply.enqueued[0].is_created, reply.enqueued[0].job.correlation_id) == (True, str(dead.job.id))
    async with asyncio.TaskGroup() as tasks:
        again = tasks.create_task(world.send(second))
        async with asyncio.timeout(60):  # as above
            assert (await world.send(world.new(idempotency_key="another"))).enqueued[0].is_created
        assert not again.done()
        await (own.commit() if is_committed else own.rollback())
    one = again.result().enqueued[0]
    assert (one.job.id, one.is_created) == ((first.id, False) if is_committed else (second.id, True))


async def test_a_key_that_stays_taken_makes_it_busy_in_bounded_time(world: World) -> None:
    """S13: not forever, and nothing is stored."""
    async with KINDS["psycopg"]() as own:
        await own.begin()
        await send_in(world, own, world.new(idempotency_key="k"))
        with pytest.raises(StoreBusy) as raised:
            await world.send(world.new(idempotency_key="k"))
        assert raised.value.retry_safe
        await own.rollback()
    assert await world.find_all() == []


async def test_two_transactions_that_want_the_same_key_are_told_which_of_them_is_busy(world: World) -> None:
    """The second waits, then says so, and its transaction goes on."""
    other = world.new()
    async with KINDS["psycopg_async"]() as one, KINDS["asyncpg"]() as two:
        await one.begin()
        await send_in(world, one, world.new(dedup_key="d"))
        await two.begin()
        with pytest.raises(StoreBusy, match="same key"):
            await send_in(world, two, world.new(dedup_key="d"))
        await send_in(world, two, other)
        await two.commit()
        await one.rollback()
    assert [job.id for job in await world.find_all()] == [other.id]


async def test_a_waiting_worker_hears_of_the_commit(
    store: PostgresStore, own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S56: the commit itself tells it, without a poll."""
    monkeypatch.setattr(wake, "POLL_SECONDS", 3_600.0)
    while await hint(store, 0.05):
        pass  # what begins to listen looks once
    await own.begin()
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(hint(store, 3_600))
        await store.jobs.enqueue_in(own.connection, EnqueueRequest(scope=ALL, jobs=(plain_job(),)))
        await own.commit()
    assert waiting.result()


async def hint(store: PostgresStore, seconds: float) -> bool:
    """Wait for a hint about the default queue."""
    at_most = round(seconds * SECOND)
    return await store.registry.wait(
        WaitRequest(scope=ALL, worker="w1", queues=("default",), at_most=at_most)
    )
