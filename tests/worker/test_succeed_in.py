"""A handler succeeds in its own transaction on an apsw connection: effect and success are one step (S63)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import apsw
import pytest

from fairlane import ClaimLost, Context, Fairlane, State, Unsupported
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import ReclaimRequest
from fairlane.store.sqlite.store import SqliteStore
from tests.worker.world import LONG, World, changed

EFFECT = "INSERT INTO effects VALUES (1)"


@pytest.fixture
async def own(world: World, app: Fairlane) -> Any:
    """The application's own connection to the store's file, with a table of its own."""
    await app.client.store.upkeep.migrate()
    connection = apsw.Connection(world.url.removeprefix("sqlite:///"))
    connection.set_busy_timeout(10_000)
    connection.execute("CREATE TABLE effects (n)")
    yield connection
    connection.close()


def effects(own: apsw.Connection) -> int:
    """Count what was committed."""
    return len(list(own.execute("SELECT * FROM effects")))


async def test_effect_and_success_are_committed_together(
    world: World, app: Fairlane, own: apsw.Connection
) -> None:
    """With the result that was given; the worker settles nothing a second time."""

    @app.task(name="pay")
    def pay(ctx: Context) -> str:
        with own:
            own.execute(EFFECT)
            ctx.succeed_in(own, "paid")
        return "ignored"

    job = await pay.using(tenant="acme").aenqueue()
    await world.burst(app)
    seen = await job.arefresh()
    assert (seen.state, len(seen.attempts), effects(own)) == (State.SUCCEEDED, 1, 1)
    assert await job.aresult() == "paid"


async def test_an_asynchronous_handler_may_use_a_plain_connection(
    world: World, app: Fairlane, own: apsw.Connection
) -> None:
    """Both words work in the worker's loop."""

    @app.task(name="pay")
    async def pay(ctx: Context, *, awaits: bool) -> None:
        with own:
            own.execute(EFFECT)
            if awaits:
                await ctx.asucceed_in(own)
            else:
                ctx.succeed_in(own)

    jobs = [await pay.using(tenant="acme").aenqueue(awaits=awaits) for awaits in (True, False)]
    await world.burst(app)
    assert [(await job.arefresh()).state for job in jobs] == [State.SUCCEEDED] * 2
    assert effects(own) == 2


async def test_after_a_rollback_the_handlers_outcome_counts(
    world: World, app: Fairlane, own: apsw.Connection
) -> None:
    """Neither the effect nor the success happened."""

    @app.task(name="pay", max_attempts=1)
    def pay(ctx: Context) -> None:
        with own:
            own.execute(EFFECT)
            ctx.succeed_in(own)
            message = "after all, no"
            raise RuntimeError(message)

    job = await pay.using(tenant="acme").aenqueue()
    await world.burst(app)
    assert ((await job.arefresh()).state, effects(own)) == (State.DEAD, 0)


async def test_a_handler_that_lost_its_claim_hears_of_it(
    world: World, app: Fairlane, own: apsw.Connection
) -> None:
    """S36: another has the job by now, and the transaction is rolled back."""
    heard: list[ClaimLost] = []

    @app.task(name="pay", at_most_once=True)
    async def pay(ctx: Context) -> None:
        store = SqliteStore(world.url, lambda: world.now() + 1_000_000 * SECOND)
        await store.claims.reclaim(ReclaimRequest(scope=Scope.all()))
        await store.upkeep.aclose()
        try:
            with own:
                own.execute(EFFECT)
                ctx.succeed_in(own)
        except ClaimLost as error:
            heard.append(error)
            raise

    job = await pay.using(tenant="acme").aenqueue()
    await world.burst(app, settings=changed(LONG, renew_every=1_000 * SECOND))
    assert ((await job.arefresh()).state, effects(own)) == (State.DEAD, 0)
    assert [error.id for error in heard] == [job.id]


async def test_a_connection_that_cannot_be_joined_is_refused(world: World, app: Fairlane) -> None:
    """The attempt goes on, and its outcome counts."""

    @app.task(name="pay")
    def pay(ctx: Context) -> str:
        with closing(sqlite3.connect(":memory:")) as other, pytest.raises(Unsupported, match="outbox"):
            ctx.succeed_in(other)
        return "without"

    job = await pay.using(tenant="acme").aenqueue()
    await world.burst(app)
    assert await job.aresult() == "without"
