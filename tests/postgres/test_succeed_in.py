"""Settle inside the handler's own transaction (S63): its commit decides, and nobody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import msgspec
import psycopg
import pytest

from fairlane import Backoff, ClaimLost, Context, Job, State
from fairlane.app.task.context import AttemptControl
from fairlane.model.errors import StoreBusy, StoreError
from fairlane.model.instants import SECOND
from fairlane.model.job import Claim
from fairlane.model.lifecycle.states import CancelReply
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import ReclaimRequest, RevokedJob, SettleReply, SettleRequest
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL, World, failed
from tests.postgres.own import KINDS, Own
from tests.servers.postgres import shared_url
from tests.servers.schemas import url_of
from tests.worker.world import LONG, changed, until_async
from tests.worker.world import World as WorkerWorld


@pytest.fixture(params=KINDS)
async def own(request: pytest.FixtureRequest) -> AsyncIterator[Own]:
    """The handler's own connection, of each kind."""
    async with KINDS[request.param]() as own:
        yield own


async def settle_in(world: World, own: Own, claim: Claim, **changes: Any) -> SettleReply:
    """Succeed in the transaction of a connection."""
    verdict = msgspec.structs.replace(world.verdict(claim), **changes)
    request = SettleRequest(scope=ALL, worker="w1", settlements=(verdict,))
    return await world.store.claims.settle_in(own.connection, request)


# ── the commit decides ───────────────────────────────────────────────────────


async def test_a_job_has_succeeded_with_the_commit_and_not_before(world: World, own: Own) -> None:
    """Others see it running until then; its keys and counts follow, too."""
    job = await world.enqueue(idempotency_key="k", dedup_key="d")
    claim = await world.claim_one()
    await own.begin()
    reply = await settle_in(world, own, claim)
    assert [one.state for one in reply.settled] == [State.SUCCEEDED]
    assert (await world.get(job.id)).state is State.RUNNING
    await own.commit()
    done = await world.get(job.id)
    assert (done.state, [attempt.outcome for attempt in done.attempts]) == (State.SUCCEEDED, ["succeeded"])
    assert (await world.send(world.new(dedup_key="d"))).enqueued[0].is_created


async def test_a_rollback_leaves_the_claim_as_it_was(world: World, own: Own) -> None:
    """The attempt can still end otherwise."""
    await world.enqueue()
    claim = await world.claim_one()
    await own.begin()
    await settle_in(world, own, claim)
    await own.rollback()
    assert await world.get(claim.job.id) == claim.job
    assert await world.settle(claim, failed()) is State.DELAYED


async def test_a_stale_fence_changes_nothing_and_the_transaction_goes_on(world: World, own: Own) -> None:
    """S36: the answer says so, and what else is in the transaction can be committed or not."""
    await world.enqueue()
    claim = await world.claim_one()
    await own.begin()
    reply = await settle_in(world, own, claim, fence=claim.fence - 1)
    assert reply.stale == (claim.job.id,)
    await own.run("SELECT 1")
    await own.commit()
    assert await world.get(claim.job.id) == claim.job


async def test_twice_in_one_transaction_is_once(world: World, own: Own) -> None:
    """At most one settlement of an attempt is accepted (S63)."""
    await world.enqueue()
    claim = await world.claim_one()
    await own.begin()
    await settle_in(world, own, claim)
    assert (await settle_in(world, own, claim)).stale == (claim.job.id,)
    await own.commit()
    assert (await world.get(claim.job.id)).state is State.SUCCEEDED


async def test_without_an_open_transaction_nothing_is_settled(world: World) -> None:
    """It would be committed at once, whatever becomes of the rest."""
    await world.enqueue()
    claim = await world.claim_one()
    async with KINDS["psycopg"]() as own:
        with pytest.raises(StoreError, match="no open transaction"):
            await settle_in(world, own, claim)
    assert await world.get(claim.job.id) == claim.job


# ── while it is open ─────────────────────────────────────────────────────────


async def test_while_it_is_open_nobody_waits_for_it(world: World) -> None:
    """Renewals, reclaims, claims and settlements go on without it; cancel and revoke say that they cannot."""
    await world.enqueue_many(3)
    claim, other = await world.claim(2)
    async with KINDS["psycopg"]() as own:
        await own.begin()
        await settle_in(world, own, claim)
        async with asyncio.timeout(60):  # who waits for a lock is told after five
            reply = await world.renew(claim, other)
            assert reply.stale == ()
            world.advance(13)
            lost = await world.reclaim()
            assert [one.id for one in lost.lost] == [other.job.id]
            assert len(await world.claim(5)) == 2
            verdict = world.verdict(claim, failed())
            request = SettleRequest(scope=ALL, worker="w1", settlements=(verdict,), waits=False)
            assert await world.store.claims.settle(request) == SettleReply()
        with pytest.raises(StoreBusy):
            await world.cancel(claim.job.id)
        with pytest.raises(StoreBusy):
            await world.revoke(claim.job.id, how="return")
        await own.rollback()
    assert await world.cancel(claim.job.id) == {claim.job.id: CancelReply.REQUESTED}


async def test_a_cancel_waits_for_a_settlement_in_flight(world: World) -> None:
    """It is answered by what the job has become."""
    await world.enqueue()
    claim = await world.claim_one()
    async with KINDS["asyncpg"]() as own:
        await own.begin()
        await settle_in(world, own, claim)
        async with asyncio.TaskGroup() as tasks:
            asked = tasks.create_task(world.cancel(claim.job.id))
            async with asyncpg.create_pool(shared_url(), min_size=1, max_size=1) as pool:
                await until_async(lambda: _is_anybody_waiting(pool), True)
            await own.commit()
    assert asked.result() == {claim.job.id: CancelReply.FINISHED}


async def test_a_revocation_waits_for_a_settlement_in_flight(world: World) -> None:
    """S72: a job that has succeeded meanwhile stays so."""
    await world.enqueue()
    claim = await world.claim_one()
    async with KINDS["asyncpg"]() as own:
        await own.begin()
        await settle_in(world, own, claim)
        async with asyncio.TaskGroup() as tasks:
            asked = tasks.create_task(world.revoke(claim.job.id, how="dead"))
            async with asyncpg.create_pool(shared_url(), min_size=1, max_size=1) as pool:
                await until_async(lambda: _is_anybody_waiting(pool), True)
            await own.commit()
    assert asked.result() == (RevokedJob(claim.job.id, "not_running", State.SUCCEEDED),)


async def _is_anybody_waiting(pool: asyncpg.Pool) -> bool:
    return bool(await pool.fetchval("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))


# ── in a worker ──────────────────────────────────────────────────────────────


class Effects:
    """The application's own table, on its own connections."""

    def __init__(self, schema: str) -> None:
        """Make the table."""
        self.table = f"{schema}.effects"
        self.schema = schema
        with psycopg.connect(shared_url()) as connection:
            connection.execute(f"CREATE TABLE IF NOT EXISTS {self.table} (what text)")

    def count(self) -> int:
        """Count what was committed."""
        with psycopg.connect(shared_url()) as connection:
            row = connection.execute(f"SELECT count(*) FROM {self.table}").fetchone()  # noqa: S608 (its own)
            assert row is not None
            return int(row[0])

    @property
    def insert(self) -> str:
        """The effect."""
        return f"INSERT INTO {self.table} VALUES ('done')"  # noqa: S608 (its own)


@pytest.fixture
def effects(schema: str) -> Effects:
    """A table of the application, in the same database."""
    return Effects(schema)


@pytest.fixture
async def workers(schema: str, tmp_path: Any) -> AsyncIterator[WorkerWorld]:
    """Workers on that schema."""
    made = WorkerWorld(tmp_path)
    made.url = url_of(schema)
    yield made
    for app in made.apps:
        await app.aclose()


async def state(job: Job[Any]) -> State:
    """Look at a job again."""
    return (await job.arefresh()).state


async def test_effect_and_success_are_committed_together(workers: WorkerWorld, effects: Effects) -> None:
    """S63: with the result that was given; what the handler returns afterwards is not looked at."""
    app = workers.app()

    @app.task(name="pay")
    def pay(ctx: Context) -> str:
        with psycopg.connect(shared_url()) as connection:
            connection.execute(effects.insert)
            ctx.succeed_in(connection, "paid")
        return "ignored"

    job = await pay.using(tenant="acme").aenqueue()
    await workers.burst(app)
    assert (await state(job), effects.count()) == (State.SUCCEEDED, 1)
    assert await job.aresult() == "paid"


async def test_an_asynchronous_handler_awaits_the_twin(workers: WorkerWorld, effects: Effects) -> None:
    """On an asyncpg connection of the worker's loop."""
    app = workers.app()

    @app.task(name="pay")
    async def pay(ctx: Context) -> None:
        connection = await asyncpg.connect(shared_url())
        try:
            async with connection.transaction():
                await connection.execute(effects.insert)
                await ctx.asucceed_in(connection)
        finally:
            await connection.close()

    job = await pay.using(tenant="acme").aenqueue()
    await workers.burst(app)
    assert (await state(job), effects.count()) == (State.SUCCEEDED, 1)


async def test_after_a_rollback_the_handlers_outcome_counts(workers: WorkerWorld, effects: Effects) -> None:
    """The attempt has failed, and the next one has its effect once."""
    app = workers.app()

    @app.task(name="pay", retry=Backoff(0.001))
    def pay(ctx: Context) -> None:
        with psycopg.connect(shared_url()) as connection:
            connection.execute(effects.insert)
            ctx.succeed_in(connection)
            if ctx.attempt == 1:
                message = "after all, no"
                raise RuntimeError(message)

    job = await pay.using(tenant="acme").aenqueue()
    async with workers.working(app):
        await until_async(lambda: state(job), State.SUCCEEDED)
    seen = await job.arefresh()
    assert [attempt.outcome for attempt in seen.attempts] == ["failed", "succeeded"]
    assert effects.count() == 1


async def test_an_error_after_the_commit_changes_nothing(
    workers: WorkerWorld, effects: Effects, caplog: pytest.LogCaptureFixture
) -> None:
    """The job has succeeded; the log says what the handler did then."""
    app = workers.app()

    @app.task(name="pay")
    def pay(ctx: Context) -> None:
        with psycopg.connect(shared_url()) as connection:
            connection.execute(effects.insert)
            ctx.succeed_in(connection)
        message = "too late"
        raise RuntimeError(message)

    job = await pay.using(tenant="acme").aenqueue()
    await workers.burst(app)
    seen = await job.arefresh()
    assert (seen.state, len(seen.attempts), effects.count()) == (State.SUCCEEDED, 1, 1)
    assert "succeeded in its handler's own transaction; it then failed" in caplog.text


async def test_a_handler_that_lost_its_claim_hears_of_it_and_leaves_no_effect(
    workers: WorkerWorld, effects: Effects, schema: str
) -> None:
    """S36: another has the job by now."""
    app = workers.app()
    heard: list[str] = []

    @app.task(name="pay", max_attempts=1)
    async def pay(ctx: Context) -> None:
        store = PostgresStore(url_of(schema), lambda: workers.now() + 1_000_000 * SECOND)
        await store.claims.reclaim(ReclaimRequest(scope=Scope.all()))
        await store.upkeep.aclose()
        connection = await asyncpg.connect(shared_url())
        try:
            async with connection.transaction():
                await connection.execute(effects.insert)
                await ctx.asucceed_in(connection)
        except ClaimLost as error:
            heard.append(str(error))
            raise
        finally:
            await connection.close()

    job = await pay.using(tenant="acme").aenqueue()
    await workers.burst(app, settings=changed(LONG, renew_every=1_000 * SECOND))
    assert (await state(job), effects.count()) == (State.DEAD, 0)
    assert "roll the transaction back" in heard[0]


async def test_a_handler_that_goes_on_after_its_commit_is_not_stopped(workers: WorkerWorld) -> None:
    """Renewals find no claim any more, and know why."""
    app = workers.app()
    renewed = asyncio.Event()

    @app.task(name="pay")
    async def pay(ctx: Context) -> str:
        connection = await asyncpg.connect(shared_url())
        async with connection.transaction():
            await ctx.asucceed_in(connection)
        await connection.close()
        before = len(workers.requests("renew"))
        await until_async(lambda: _grown(workers, before + 3), True)
        assert not ctx.cancelled
        renewed.set()
        return "done"

    job = await pay.using(tenant="acme").aenqueue()
    await workers.burst(app)
    assert renewed.is_set()
    assert await state(job) is State.SUCCEEDED


async def _grown(workers: WorkerWorld, wanted: int) -> bool:
    return len(workers.requests("renew")) >= wanted


async def test_a_transaction_that_is_left_open_decides_alone(
    workers: WorkerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker waits for nobody; the commit comes when it comes."""
    app = workers.app()
    left: list[psycopg.Connection] = []

    @app.task(name="pay")
    def pay(ctx: Context) -> None:
        connection = psycopg.connect(shared_url())
        left.append(connection)
        ctx.succeed_in(connection)

    job = await pay.using(tenant="acme").aenqueue()
    await workers.burst(app)
    assert await state(job) is State.RUNNING
    assert "its own transaction is still open and decides" in caplog.text
    left[0].commit()
    left[0].close()
    assert await state(job) is State.SUCCEEDED


@pytest.mark.parametrize(
    ("on_bad_result", "state_and_effects"), [("drop", (State.SUCCEEDED, 1)), ("dead", (State.DEAD, 0))]
)
async def test_a_result_that_cannot_be_kept_is_dropped_or_refused_before_anything_happens(
    workers: WorkerWorld, effects: Effects, on_bad_result: Any, state_and_effects: tuple[State, int]
) -> None:
    """S34: where it is not to be dropped the handler hears of it while it can still roll back."""
    app = workers.app()

    @app.task(name="pay", max_attempts=1, on_bad_result=on_bad_result)
    def pay(ctx: Context) -> None:
        with psycopg.connect(shared_url()) as connection:
            connection.execute(effects.insert)
            ctx.succeed_in(connection, object())

    job = await pay.using(tenant="acme").aenqueue()
    await workers.burst(app)
    assert (await state(job), effects.count()) == state_and_effects


def test_a_context_made_by_hand_cannot_succeed() -> None:
    """There is no attempt behind it."""
    context = Context(tenant="acme", attempt=1, show=_shows_nothing, fence=1, control=AttemptControl())
    with pytest.raises(StoreError, match="not created by a worker"):
        context.succeed_in(object())


def _shows_nothing() -> Job[Any]:
    raise LookupError
