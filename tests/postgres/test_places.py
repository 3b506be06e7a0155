"""Several installations in one database, and roles that may do only what they need (S9)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from fairlane.model.errors import StoreError
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.retention import Retention
from fairlane.store.contract.registry import WorkersRequest
from fairlane.store.contract.upkeep import DedicateRequest, PruneRequest
from fairlane.store.postgres.migrating import functions_digest
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL, SUCCEEDED, World
from tests.oracle.clock import DrivenClock
from tests.servers.schemas import lent_schema, url_of

GRANTS = (
    "GRANT USAGE ON SCHEMA {} TO shop",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {} TO shop",
)
"""What `Roles and grants` in docs/how-to/use-postgresql.md says."""


@pytest.fixture
async def neighbour() -> AsyncIterator[World]:
    """Another installation in the same database."""
    async with lent_schema() as schema:
        clock = DrivenClock()
        world = World(PostgresStore(url_of(schema), clock.now), clock)
        yield world
        await world.check_invariants()
        await world.store.upkeep.aclose()


@pytest.fixture
async def shop(schema: str, admin: psycopg.Connection) -> AsyncIterator[World]:
    """The schema as a role sees it that owns nothing of it."""
    admin.execute("DROP ROLE IF EXISTS shop")
    admin.execute("CREATE ROLE shop LOGIN")
    for grant in GRANTS:
        admin.execute(SQL(grant).format(Identifier(schema)))
    clock = DrivenClock()
    world = World(PostgresStore(url_of(schema).replace("fairlane@", "shop@"), clock.now), clock)
    yield world
    await world.store.upkeep.aclose()
    admin.execute("DROP OWNED BY shop")
    admin.execute("DROP ROLE shop")


async def test_installations_in_one_database_know_nothing_of_each_other(
    world: World, neighbour: World
) -> None:
    """S9: jobs, workers, policies, keys and purposes of one schema are not in another."""
    await world.enqueue(idempotency_key="k")
    await world.register("w1")
    await neighbour.enqueue(idempotency_key="k", task="other")
    assert [job.task for job in await neighbour.find_all()] == ["other"]
    assert (await neighbour.claim_one()).job.task == "other"
    assert await neighbour.claim(10) == []
    assert await neighbour.store.registry.workers(WorkersRequest(scope=ALL)) == ()
    async with lent_schema() as empty:
        store = PostgresStore(url_of(empty))
        await store.upkeep.dedicate(DedicateRequest(scope=ALL, purpose="tests"))
        await store.upkeep.aclose()
    assert (await world.claim_one()).job.idempotency_key == "k"


async def test_a_role_with_rights_on_rows_alone_sends_and_runs_jobs(shop: World) -> None:
    """It may enqueue, look, steer and work: all that an application and its workers do."""
    await shop.register("w1")
    first, second = await shop.enqueue_many(2)
    assert (await shop.run(SUCCEEDED)).state is State.SUCCEEDED
    assert await shop.is_known(first.id)
    await shop.cancel(second.id)
    await shop.promote()
    await shop.expire()
    await shop.reclaim()
    await shop.check_invariants()


async def test_a_role_that_owns_nothing_cannot_change_the_schema(
    shop: World, schema: str, admin: psycopg.Connection
) -> None:
    """The error says that it is a matter of rights."""
    change = SQL("UPDATE {}.meta SET value = %s WHERE name = 'functions'").format(Identifier(schema))
    admin.execute(change, ("0",))
    try:
        with pytest.raises(StoreError, match="the documentation names the rights"):
            await shop.store.upkeep.migrate()
    finally:
        admin.execute(change, (functions_digest(),))


async def test_a_role_without_rights_is_told_so(shop: World, schema: str, admin: psycopg.Connection) -> None:
    """The same for one that may not even look."""
    admin.execute(SQL("REVOKE ALL ON ALL TABLES IN SCHEMA {} FROM shop").format(Identifier(schema)))
    with pytest.raises(StoreError, match=r"permission denied.*the documentation names the rights"):
        await shop.enqueue()


async def test_retention_needs_the_owner(shop: World) -> None:
    """History goes by dropping whole days, which only their owner may."""
    await shop.enqueue()
    await shop.run(SUCCEEDED)
    shop.advance(400 * 86_400)
    with pytest.raises(StoreError, match="the documentation names the rights"):
        await shop.store.upkeep.prune(PruneRequest(scope=ALL, retention=Retention()))
