"""Behind PgBouncer in transaction mode nothing of a session is used: no statement, setting or listener."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import cast

import psycopg
import pytest

from fairlane.model.lifecycle.states import State
from fairlane.model.policy.retention import Retention
from fairlane.store.contract.inspection import InspectRequest
from fairlane.store.contract.upkeep import PruneRequest
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL, SUCCEEDED, World, failed
from tests.oracle.clock import DrivenClock
from tests.servers.pgbouncer import bouncing, program
from tests.servers.postgres import PostgresServer


@pytest.fixture(params=["directly", "by PgBouncer"])
def port(request: pytest.FixtureRequest, breakable: PostgresServer) -> Iterator[int]:
    """A port that leads to the module's server, in the mode for PgBouncer, with one between or without."""
    if request.param == "directly":
        yield breakable.port
        return
    try:
        program()
    except LookupError as error:
        pytest.skip(str(error))
    with bouncing(breakable) as port:
        yield port


@pytest.fixture
async def world(port: int, breakable: PostgresServer) -> AsyncIterator[World]:
    """A world by that port, in a schema of its own."""
    clock = DrivenClock()
    url = f"postgresql://fairlane@127.0.0.1:{port}/postgres?schema=bounced&pool=8&pgbouncer=transaction"
    store = PostgresStore(url, clock.now)
    world = World(store, clock)
    try:
        await store.upkeep.migrate()
        yield world
        await world.check_invariants()
    finally:
        await store.upkeep.aclose()
        with psycopg.connect(breakable.url, autocommit=True) as admin:
            admin.execute("DROP SCHEMA IF EXISTS bounced CASCADE")


async def test_jobs_live_their_whole_life(world: World) -> None:
    """Every kind of verb once: keyed and plain enqueues, claims, renewals, endings, duties, readings."""
    await world.register("w1")
    await world.enqueue(idempotency_key="k")
    assert not (await world.send(world.new(idempotency_key="k"))).enqueued[0].is_created
    claim = await world.claim_one()
    await world.renew(claim)
    assert await world.settle(claim, failed()) is State.DELAYED
    world.advance(5)
    await world.promote()
    assert (await world.run(SUCCEEDED)).state is State.SUCCEEDED
    (cancelled,) = await world.enqueue_many(1)
    await world.cancel(cancelled.id)
    await world.reclaim()
    await world.expire()
    await world.store.upkeep.prune(PruneRequest(scope=ALL, retention=Retention()))
    assert (await world.store.upkeep.inspect(InspectRequest(scope=ALL))).is_checked
    assert (await world.states())[State.SUCCEEDED] == 1


async def test_many_callers_share_few_sessions(world: World) -> None:
    """Statements of one never meet the values of another."""
    await asyncio.gather(
        *(world.enqueue(f"tenant{number % 5}", queue=f"q{number % 3}") for number in range(60))
    )
    claims = await asyncio.gather(*(world.claim(10, f"q{number % 3}") for number in range(9)))
    assert sorted(len({one.job.id for one in some}) for some in claims)[-6:] == [10] * 6
    await asyncio.gather(*(world.settle(one) for some in claims for one in some))
    assert await world.states() == {State.SUCCEEDED: 60}


async def test_every_call_has_its_settings(world: World) -> None:
    """S13: PgBouncer refuses them in the beginning, and would forget them in between."""
    server = cast("PostgresStore", world.store)._server
    assert await server.value("SHOW lock_timeout") == "5s"
    assert await server.value("SHOW transaction_isolation") == "read committed"
