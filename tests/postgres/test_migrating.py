"""A schema is created once, whoever asks; a newer one is left alone (S67)."""

from __future__ import annotations

import asyncio
import gzip
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from fairlane.model.errors import SchemaTooNew, SchemaTooOld, StoreError
from fairlane.model.failure import ErrorClass
from fairlane.model.job import Claim
from fairlane.model.lifecycle.states import State
from fairlane.model.review import ReviewRecord
from fairlane.store.contract.request import Request
from fairlane.store.contract.upkeep import MigrateReply
from fairlane.store.postgres import migrating
from fairlane.store.postgres.migrating import NEWEST, SERVES
from fairlane.store.postgres.store import PostgresStore
from tests.contract.dead.test_dead import fingerprint_of
from tests.contract.world import ALL, World, ruined
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

VERSION_4 = Path(__file__).with_name("version_4.sql.gz")
"""A schema named `fourth` as version 4 made it, filled by `tests.migrations.filling`; likewise."""


def text_of(dump: Path) -> bytes:
    """Return a dump as SQL."""
    return gzip.decompress(dump.read_bytes())


@asynccontextmanager
async def restored(admin: psycopg.Connection, dump: Path, schema: str) -> AsyncIterator[World]:
    """Return a world on a schema from a dump, at the instant at which it was left."""
    clock = DrivenClock()
    store = PostgresStore(url_of(schema), clock.now)
    admin.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(schema)))
    with psycopg.connect(shared_url(), autocommit=True) as other:  # the text changes its settings
        other.execute(text_of(dump))
    yield World(store, clock)
    await store.upkeep.aclose()
    admin.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(schema)))


@pytest.fixture
async def first(admin: psycopg.Connection) -> AsyncIterator[World]:
    """A world on the schema of version 1."""
    async with restored(admin, VERSION_1, "first") as world:
        yield world


@pytest.fixture
async def fourth(admin: psycopg.Connection) -> AsyncIterator[World]:
    """A world on the schema of version 4."""
    async with restored(admin, VERSION_4, "fourth") as world:
        world.advance(26)
        yield world


async def test_a_filled_schema_of_the_first_version_is_brought_on(first: World) -> None:
    """S67: what waits, runs and is finished there is found as it was left, and goes on; nothing is lost."""
    assert (await first.store.upkeep.migrate()).before == 1
    assert len(await first.find_all()) == sum((await first.counts()).values()) == 13
    running = await first.find_all(states=frozenset({State.RUNNING}))
    claims = [Claim(job, job.fence, job.lease_until or 0) for job in running]
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


async def test_workers_of_the_first_version_settle_and_renew_as_they_did(
    first: World, admin: psycopg.Connection
) -> None:
    """S67: they say nothing of metadata, nor of how many attempts are kept."""
    await first.store.upkeep.migrate()
    first.advance(1)
    await first.enqueue_many(3, queue="new", metadata=b'{"plan":"pro"}')
    claims = await first.claim(3, "new", worker="old")
    ids, fences = [claim.job.id for claim in claims], [claim.fence for claim in claims]
    renew = "SELECT stale FROM first.renew(%s, 'old', NULL, 12000000, %s::uuid[], %s, ARRAY[NULL]::bytea[])"
    assert admin.execute(renew, (first.now, ids, fences)).fetchall() == [(None,)]
    settle = """
        SELECT settled FROM first.settle(%s, 'old', NULL, %s::uuid[], %s, ARRAY[true], ARRAY[NULL]::bigint[],
          %s::text[], ARRAY['because'], ARRAY[5::bigint], ARRAY[0], ARRAY[0], ARRAY[0], ARRAY[0],
          ARRAY[false], ARRAY['"outcome":"snoozed"}'], ARRAY[false], ARRAY[NULL]::bytea[])
    """
    states = (["succeeded"], ["delayed", "dead"])
    for chosen, names in zip((slice(1), slice(1, 3)), states, strict=True):
        ((settled,),) = admin.execute(settle, (first.now, ids[chosen], fences[chosen], names)).fetchall()
        assert settled == ids[chosen]
    for id, state in zip(ids, (State.SUCCEEDED, State.DELAYED, State.DEAD), strict=True):
        job = await first.get(id)
        assert (job.state, job.metadata, len(job.attempts)) == (state, b'{"plan":"pro"}', 1)


async def test_functions_that_only_functions_call_are_there_once(
    first: World, admin: psycopg.Connection
) -> None:
    """S67: what their parameters were before is removed; the old ones would call what is gone."""
    await first.store.upkeep.migrate()
    names = [
        *("append_attempt", "claim", "claim_batch", "claim_stepwise", "end_jobs", "end_jobs_alike"),
        *("extend_leases", "finish_jobs", "finish_jobs_alike", "renew", "requeue_jobs", "settle"),
        "write_end_deltas",
    ]
    query = "SELECT proname FROM pg_proc WHERE pronamespace = 'first'::regnamespace AND proname = ANY (%s)"
    assert sorted(name for (name,) in admin.execute(query, (names,)).fetchall()) == names


async def test_letters_of_the_fourth_version_are_pending_without_a_fingerprint_and_can_be_decided(
    fourth: World,
) -> None:
    """S67, S75: nothing of them is lost; whoever fails from then on has a fingerprint and is told of."""
    assert (await fourth.store.upkeep.migrate()).before == 4
    letters = await fourth.letters()
    assert [(one.fingerprint, one.review) for one in letters] == [("", ReviewRecord())] * 4
    assert [letter.job.because for letter in letters][:2] == ["failed: kaput", "condemned: spoilt"]
    assert [letter.job for letter in await fourth.letters(fingerprint="")] == [one.job for one in letters]
    await fourth.review("resolve", letters[0].job.id)
    new = await fourth.rerun(letters[1].job)
    assert [one.review.review for one in await fourth.letters()][:2] == ["resolved", "reprocessed"]
    await fourth.cancel(new.id)
    assert len((await fourth.follow()).followed) == 1
    await fourth.enqueue(queue="new")
    dead = await fourth.run(ruined(), "new")
    assert [letter.job for letter in await fourth.letters(fingerprint=fingerprint_of(dead))] == [dead]
    assert "dead_letter" in [entry.kind for entry in await fourth.appended("events")]
    await fourth.check_invariants()


async def test_workers_of_the_fourth_version_settle_as_they_did(
    fourth: World, admin: psycopg.Connection
) -> None:
    """S67: their failures have no fingerprint, so a death is told by its task; all else is as of ours."""
    await fourth.store.upkeep.migrate()
    (running,) = await fourth.find_all(states=frozenset({State.RUNNING}), task="crunch")
    failure = '{"error_class":"budget","error_type":"E","message":"m","traceback":null}'
    tail = f'"outcome":"failed","failure":{failure}}}'
    settle = (
        "SELECT settled, doubtful FROM fourth.settle(%s, 'w2', NULL, ARRAY[%s], ARRAY[%s::bigint], '{false}',"
        " '{NULL}', '{dead}', '{failed: m}', '{0}', '{1}', '{0}', '{0}', '{0}', '{false}', ARRAY[%s],"
        " '{true}', '{NULL}')"
    )
    values = (fourth.now, running.id, running.fence, tail)
    assert admin.execute(settle, values).fetchall() == [([running.id], None)]
    letter = await fourth.letter(running.id)
    assert letter is not None
    assert (letter.error_class, letter.fingerprint) == (ErrorClass.BUDGET, "")
    assert [(one.kind, one.subject) for one in await fourth.appended("events")] == [("dead_letter", "crunch")]
    read = "SELECT id, tenant, review FROM fourth.dead WHERE id = %s"
    assert admin.execute(read, (running.id,)).fetchall() == [(running.id, "acme", "pending")]


async def test_every_function_of_the_fourth_version_is_still_there(
    fourth: World, admin: psycopg.Connection
) -> None:
    """S67: it is called as before and returns what it did; more parameters have defaults.

    Only what no worker calls may go, or change otherwise.
    """
    query = (
        "SELECT proname, pg_get_function_result(oid), pronargs - pronargdefaults,"
        " oidvectortypes(proargtypes) FROM pg_proc WHERE pronamespace = 'fourth'::regnamespace"
    )
    before = admin.execute(query).fetchall()
    await fourth.store.upkeep.migrate()
    after = admin.execute(query).fetchall()

    def is_there(name: str, result: str, needed: int, arguments: str) -> bool:
        return any(
            (name, result) == (other, returned)
            and needs <= needed
            and f"{given}, ".startswith(f"{arguments}, ")
            for other, returned, needs, given in after
        )

    gone = {row[0] for row in before if not is_there(*row)}
    inside = {"strand_block", "start_attempts", "unpark_at_gates"}  # called by functions alone
    assert gone <= inside | {
        "append_attempt",
        "error_class",
        "end_jobs_alike",
        "extend_leases",
        "finish_jobs_alike",
    }
