"""A schema is created once, whoever asks; a newer one is left alone (S67)."""

from __future__ import annotations

import asyncio
import gzip
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from fairlane.model.errors import SchemaTooNew, SchemaTooOld, StoreError
from fairlane.model.job import Claim
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.request import Request
from fairlane.store.contract.upkeep import MigrateReply
from fairlane.store.postgres import migrating
from fairlane.store.postgres.migrating import NEWEST, SERVES
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL, World
from tests.oracle.clock import DrivenClock
from tests.servers.postgres import shared_url
from tests.servers.schemas import url_of

NAMES = ("plain", 'odd "name" {schema}', "Schön")


@pytest.fixture(params=NAMES)
async def bare(request: pytest.FixtureRequest, admin: psycopg.Connection) -> AsyncIterator[PostgresStore]:
    """A store whose schema does not exist."""
    store = PostgresStore(url_of(quote(request.param)), DrivenClock().now)
    yield store
    await store.upkeep.aclose()
    admin.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(request.param)))


def mark(admin: psycopg.Connection, schema: str, name: str, value: str) -> None:
    """Write into a schema's own notes."""
    statement = "INSERT INTO {}.meta VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    admin.execute(SQL(statement).format(Identifier(schema)), (name, value))


async def test_a_store_that_was_never_made_says_how(bare: PostgresStore) -> None:
    """S67: verbs make nothing by themselves: the right to do so is often somebody else's."""
    with pytest.raises(SchemaTooOld, match="holds no Fairlane yet: run `fairlane migrate`"):
        await bare.registry.status(Request(scope=ALL))


async def test_several_make_a_store_at_once(bare: PostgresStore) -> None:
    """S67: one does, the others wait and find it done; then it works, whatever the schema's name is."""
    planned = await bare.upkeep.plan()
    assert (planned.before, planned.after) == (0, NEWEST)
    replies = await asyncio.gather(*(bare.upkeep.migrate() for _ in range(5)))
    assert sorted(replies, key=lambda reply: reply.before) == [planned] + 4 * [MigrateReply(NEWEST, NEWEST)]
    assert await bare.upkeep.plan() == MigrateReply(NEWEST, NEWEST)
    world = World(bare, DrivenClock())
    await world.enqueue()
    await world.run()
    await world.check_invariants()


async def test_a_newer_schema_is_left_alone(
    store: PostgresStore, schema: str, admin: psycopg.Connection
) -> None:
    """S67: by verbs and by migrating; the advice is to upgrade."""
    mark(admin, schema, "schema", str(NEWEST + 1))
    mark(admin, schema, "serves", str(NEWEST + 1))
    try:
        for verb in (store.registry.status(Request(scope=ALL)), store.upkeep.migrate(), store.upkeep.plan()):
            with pytest.raises(SchemaTooNew, match=f"newer than {NEWEST}: upgrade Fairlane"):
                await verb
    finally:
        mark(admin, schema, "schema", str(NEWEST))
        mark(admin, schema, "serves", str(SERVES))


async def test_a_newer_schema_that_serves_this_version_is_worked_on_but_not_migrated(
    store: PostgresStore, schema: str, admin: psycopg.Connection
) -> None:
    """S67: workers of the version before go on while a deploy is under way; their `migrate` does nothing."""
    mark(admin, schema, "schema", str(NEWEST + 1))
    mark(admin, schema, "serves", str(NEWEST))
    try:
        world = World(store, DrivenClock())
        job = await world.enqueue()
        assert (await world.run()).id == job.id
        for verb in (store.upkeep.migrate(), store.upkeep.plan()):
            with pytest.raises(SchemaTooNew, match=f"newer than {NEWEST}: upgrade Fairlane"):
                await verb
    finally:
        mark(admin, schema, "schema", str(NEWEST))
        mark(admin, schema, "serves", str(SERVES))


async def test_an_older_release_does_not_put_its_functions_back(
    store: PostgresStore, schema: str, admin: psycopg.Connection
) -> None:
    """S67: a release may change functions alone; whoever is left behind must not undo that for all others."""
    mark(admin, schema, "functions", "those of a newer release")
    mark(admin, schema, "release", "99.1")
    try:
        assert (await store.registry.status(Request(scope=ALL))).now > 0
        for verb in (store.upkeep.migrate(), store.upkeep.plan()):
            with pytest.raises(SchemaTooNew, match=r"the functions of Fairlane 99\.1, newer than"):
                await verb
        query = SQL("SELECT value FROM {}.meta WHERE name = 'functions'").format(Identifier(schema))
        assert admin.execute(query).fetchone() == ("those of a newer release",)
    finally:
        mark(admin, schema, "release", "0")
        await store.upkeep.migrate()


async def test_functions_are_installed_again_when_their_text_has_changed(
    store: PostgresStore, schema: str, admin: psycopg.Connection
) -> None:
    """S67: a release may change a function without changing a table."""
    mark(admin, schema, "functions", "older")
    admin.execute(SQL("DROP FUNCTION {}.now_or").format(Identifier(schema)))
    with pytest.raises(SchemaTooOld, match="run `fairlane migrate`"):
        await store.registry.status(Request(scope=ALL))
    assert await store.upkeep.plan() == MigrateReply(NEWEST, NEWEST, ("functions",))
    assert await store.upkeep.migrate() == MigrateReply(NEWEST, NEWEST, ("functions",))
    assert await store.upkeep.plan() == MigrateReply(NEWEST, NEWEST)
    assert (await store.registry.status(Request(scope=ALL))).now > 0


async def test_functions_of_an_older_release_are_not_worked_with(
    store: PostgresStore, schema: str, admin: psycopg.Connection
) -> None:
    """S67: they may mean something else, though the tables are the same and none is missing."""
    mark(admin, schema, "functions", "older")
    mark(admin, schema, "release", "0.0.1")
    with pytest.raises(SchemaTooOld, match=r"the functions of Fairlane 0\.0\.1, .*: run `fairlane migrate`"):
        await store.registry.status(Request(scope=ALL))
    assert await store.upkeep.migrate() == MigrateReply(NEWEST, NEWEST, ("functions",))
    assert (await store.registry.status(Request(scope=ALL))).now > 0


async def test_a_step_that_fails_leaves_nothing_behind(
    bare: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S67: all steps are one transaction, the schema included."""
    broken = (*migrating.STEPS, ("9999_broken", "CREATE TABLE {schema}.more (); SELECT 1 / 0"))
    monkeypatch.setattr(migrating, "STEPS", broken)
    with pytest.raises(StoreError, match="division by zero"):
        await bare.upkeep.migrate()
    assert (await bare.upkeep.plan()).before == 0
    monkeypatch.undo()
    assert (await bare.upkeep.migrate()).before == 0


VERSION_1 = Path(__file__).with_name("version_1.sql.gz")
"""A schema named `first` as version 1 made and filled it, with its functions: from `pg_dump --inserts`."""


@pytest.fixture
async def first(admin: psycopg.Connection) -> AsyncIterator[World]:
    """A world on that schema, at the instant at which it was left."""
    clock = DrivenClock()
    store = PostgresStore(url_of("first"), clock.now)
    admin.execute("DROP SCHEMA IF EXISTS first CASCADE")
    with psycopg.connect(shared_url(), autocommit=True) as other:  # the text changes its settings
        other.execute(gzip.decompress(VERSION_1.read_bytes()))
    yield World(store, clock)
    await store.upkeep.aclose()
    admin.execute("DROP SCHEMA first CASCADE")


async def test_a_filled_schema_of_the_first_version_is_brought_on(first: World) -> None:
    """S67: what waits, runs and is finished there is found as it was left, and goes on; nothing is lost."""
    assert (await first.store.upkeep.migrate()).before == 1
    assert len(await first.find_all()) == sum((await first.counts()).values()) == 13
    running = await first.find_all(states=frozenset({State.RUNNING}))
    claims = [Claim(job, job.fence, job.lease_until or 0, is_alone=False) for job in running]
    assert {await first.settle(claim) for claim in claims} == {State.SUCCEEDED}
    for seconds, jobs in ((5, 4), (3_600, 2)):  # what was ready or held, then what waits for a time
        first.advance(seconds)
        claims = await first.claim(10)
        assert len(claims) == jobs
        assert {await first.settle(claim) for claim in claims} == {State.SUCCEEDED}
    assert Counter(job.state for job in await first.find_all()) == {State.SUCCEEDED: 12, State.DEAD: 1}
    await first.check_invariants()


async def test_workers_of_the_first_version_claim_as_they_did(
    first: World, admin: psycopg.Connection
) -> None:
    """S67, S68: they ask for nothing ahead, and get jobs that may not be claimed so."""
    await first.store.upkeep.migrate()
    first.advance(1)  # ids are made by the clock
    await first.enqueue(queue="new", at_most_once=True)
    claim = (
        "SELECT id, is_partial FROM first.claim(%s, 'old', 1000000, 'new', 2, 2, 0, false, NULL, false, 0, 0)"
    )
    (job, is_partial), (no_job, is_partial_at_the_end) = admin.execute(claim, (first.now,)).fetchall()
    assert (job is not None, is_partial, no_job, is_partial_at_the_end) == (True, None, None, False)


async def test_functions_that_only_functions_call_are_there_once(
    first: World, admin: psycopg.Connection
) -> None:
    """S67: what their parameters were before is removed; the old ones would call what is gone."""
    await first.store.upkeep.migrate()
    names = ["claim", "claim_batch", "claim_stepwise", "write_end_deltas"]
    query = "SELECT proname FROM pg_proc WHERE pronamespace = 'first'::regnamespace AND proname = ANY (%s)"
    assert sorted(name for (name,) in admin.execute(query, (names,)).fetchall()) == names
