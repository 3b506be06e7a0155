"""History by day: made ahead, removed whole, and never in the way of a settlement (S50, S52)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import psycopg
import pytest

from fairlane.model.instants import DAY, SECOND
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.prune_mark import NO_MARK
from fairlane.model.policy.retention import Retention
from fairlane.model.scope import Scope
from fairlane.store.contract.request import Request
from fairlane.store.contract.upkeep import PruneReply, PruneRequest
from fairlane.store.postgres.store import PostgresStore
from fairlane.store.postgres.upkeep import prune as pruning
from tests.contract.world import ALL, World, numbers_of
from tests.servers.postgres import shared_url
from tests.servers.schemas import url_of

DAY_SECONDS: Final = DAY // SECOND
YEARS: Final = 3_650 * DAY_SECONDS


async def prune(world: World, limit: int = 1_000, **times: Any) -> PruneReply:
    """Take one pass."""
    request = PruneRequest(scope=ALL, retention=Retention(**times), limit=limit)
    return numbers_of(await world.store.upkeep.prune(request))


def days(admin: psycopg.Connection, schema: str) -> dict[str, int]:
    """Return how many jobs the tables of history hold, by their names after `history_`."""
    names = admin.execute(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        " WHERE i.inhparent = (%s || '.history')::regclass ORDER BY 1",
        (schema,),
    ).fetchall()
    return {name.removeprefix("history_"): count(admin, schema, name) for (name,) in names}


def count(admin: psycopg.Connection, schema: str, table: str) -> int:
    """Count the rows of a table."""
    row = admin.execute(f"SELECT count(*) FROM {schema}.{table}".encode()).fetchone()  # noqa: S608 (ours)
    assert row is not None
    return int(row[0])


def drop_days(admin: psycopg.Connection, schema: str) -> None:
    """Take every day away, as if nobody had ever made one."""
    for name in days(admin, schema):
        if name != "rest":
            admin.execute(f"DROP TABLE {schema}.history_{name}".encode())


async def test_a_migrated_schema_has_today_and_the_two_days_after(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """S52: so that the first settlement finds its day; 1,800,000,000 s is 15 January 2027, 08:00."""
    drop_days(admin, schema)
    await world.store.upkeep.migrate()
    assert days(admin, schema) == {"20270115": 0, "20270116": 0, "20270117": 0, "rest": 0}


async def test_midnight_parts_two_settlements_and_nothing_else(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """S52: one microsecond apart, in two days, read as usual."""
    drop_days(admin, schema)
    await world.store.upkeep.migrate()
    await world.enqueue_many(2)
    world.advance(16 * 3_600 - 0.000_001)
    early = await world.run()
    world.advance(0.000_001)
    late = await world.run()
    assert days(admin, schema) == {"20270115": 1, "20270116": 1, "20270117": 0, "rest": 0}
    assert await world.find_all() == [late, early]
    assert await world.counts() == {("acme", "default", State.SUCCEEDED): 2}


async def test_a_settlement_needs_no_day(world: World, schema: str, admin: psycopg.Connection) -> None:
    """S52: without its day it goes to the rest, and along when the day is made."""
    drop_days(admin, schema)
    await world.enqueue()
    job = await world.run()
    assert days(admin, schema) == {"rest": 1}
    assert await prune(world) == PruneReply()
    assert days(admin, schema) == {"20270115": 1, "20270116": 0, "20270117": 0, "rest": 0}
    assert await world.get(job.id) == job


async def test_what_waits_in_the_rest_is_pruned_there(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """S52: a day that was never made holds nobody's job for longer."""
    await world.enqueue()
    await world.run()
    world.advance(10 * DAY_SECONDS)
    assert await prune(world) == PruneReply(jobs=1)
    assert days(admin, schema)["rest"] == 0


@pytest.mark.parametrize("wrong", [YEARS, -YEARS])
async def test_a_clock_that_is_wrong_by_years_breaks_nothing(
    world: World, schema: str, admin: psycopg.Connection, wrong: float
) -> None:
    """S52: settling, reading and pruning go on before, during and after."""
    await world.store.upkeep.migrate()
    await world.enqueue_many(3)
    jobs = [await world.run()]
    world.advance(wrong)
    await prune(world, succeeded=2 * 10 * YEARS * SECOND)
    jobs.append(await world.run())
    world.advance(-wrong)
    jobs.append(await world.run())
    assert {job.id for job in await world.find_all()} == {job.id for job in jobs}
    await prune(world)
    world.advance(max(0, wrong) + 8 * DAY_SECONDS)
    while (await prune(world)).is_partial:
        pass
    assert await world.find_all() == []
    assert await world.counts() == {}
    left = days(admin, schema)
    assert sum(left.values()) == 0
    assert len(left) <= 7  # the rest, and the days around the three times at which it was pruned last


async def test_days_that_are_over_go_as_a_whole_and_are_counted_as_what_was_in_them(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """S52: more than a pass takes row by row; the tables go, too."""
    for _ in range(3):
        await prune(world)
        await world.enqueue_many(4)
        for _ in range(4):
            await world.run()
        world.advance(DAY_SECONDS)
    world.advance(6 * DAY_SECONDS)
    assert (await prune(world, limit=1)).jobs in range(8, 13)  # the third day is over up to 08:00 alone
    assert {name: jobs for name, jobs in days(admin, schema).items() if jobs} in ({}, {"20270117": 3})
    assert "20270115" not in days(admin, schema)
    await world.check_invariants()


async def test_a_large_day_waits_for_its_end_except_for_shorter_times(
    world: World, schema: str, admin: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S52: rows of a large day are not taken out one by one, unless a tenant or queue says so."""
    monkeypatch.setattr(pruning, "LARGE_DAY", 0)
    await prune(world)
    for tenant in ("acme", "globex"):
        await world.enqueue(tenant)
        await world.run()
    world.advance(7 * DAY_SECONDS)
    assert await prune(world, tenants={"globex": DAY}) == PruneReply(jobs=1)
    assert [job.tenant for job in await world.find_all()] == ["acme"]
    world.advance(DAY_SECONDS)
    assert await prune(world) == PruneReply(jobs=1)
    assert "20270115" not in days(admin, schema)


async def test_a_large_day_does_not_wait_for_a_task_that_is_kept_longer(
    world: World, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S103: its other rows go one by one, as they do in a small day."""
    monkeypatch.setattr(pruning, "LARGE_DAY", 0)
    kept = (await world.bring_to(State.SUCCEEDED, task="rollup")).job.id
    await world.bring_to(State.SUCCEEDED)
    world.advance(7 * DAY_SECONDS)
    assert await prune(world, tasks={"rollup": 90 * DAY}) == PruneReply(jobs=1)
    assert [job.id for job in await world.find_all()] == [kept]


async def test_a_day_that_is_archived_goes_job_by_job(
    world: World, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S105: however large it is, and whoever would have it go as a whole."""
    monkeypatch.setattr(pruning, "LARGE_DAY", 0)
    for _ in range(3):
        await world.bring_to(State.SUCCEEDED)
    world.advance(9 * DAY_SECONDS)
    request = PruneRequest(scope=ALL, retention=Retention(), limit=2, is_archived=True)
    assert [(await world.store.upkeep.prune(request)).jobs for _ in range(3)] == [2, 1, 0]
    assert await world.store.history.waiting(Request(scope=ALL)) == 3


async def test_days_before_the_newest_go_as_a_whole(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """S103: by number, unless some of their jobs may be kept longer; they are counted by state."""
    await prune(world)
    for _ in range(3):
        await world.bring_to(State.SUCCEEDED)
        await world.bring_to(State.CANCELLED)
        world.advance(DAY_SECONDS)
        await prune(world)
    assert (await prune(world, newest_finished=2, tasks={"rollup": DAY}, limit=1)).jobs == 1
    request = PruneRequest(scope=ALL, retention=Retention(newest_finished=2), limit=1)
    reply = await world.store.upkeep.prune(request)
    assert (reply.jobs, sum(reply.states.values())) == (3, 3)
    assert "20270115" not in days(admin, schema)
    await world.check_invariants()


async def test_a_day_is_removed_while_others_settle_and_read(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """S52: no settlement fails or is lost, and no reader either."""
    await prune(world)
    await world.enqueue_many(20)
    for _ in range(20):
        await world.run()
    world.advance(9 * DAY_SECONDS)
    await world.enqueue_many(60)

    async def settle() -> None:
        for _ in range(20):
            await world.run()

    async def read() -> None:
        for _ in range(20):
            await world.find_all()

    passes = [prune(world) for _ in range(4)]
    await asyncio.gather(settle(), settle(), settle(), read(), *passes)
    await prune(world)
    assert await world.counts() == {("acme", "default", State.SUCCEEDED): 60}
    assert "20270115" not in days(admin, schema)


async def test_today_is_made_while_others_settle(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """S52: who was on the way into the rest arrives, there or in the day."""
    drop_days(admin, schema)
    await world.enqueue_many(60)

    async def settle() -> None:
        for _ in range(20):
            await world.run()

    await asyncio.gather(settle(), settle(), settle(), prune(world))
    await prune(world)
    assert await world.counts() == {("acme", "default", State.SUCCEEDED): 60}
    assert days(admin, schema)["rest"] == 0


async def test_a_settlement_on_its_way_into_the_rest_arrives_when_its_day_is_made(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """S52: it has chosen the rest and waits for it, while upkeep waits for nobody and comes again."""
    drop_days(admin, schema)
    await world.enqueue_many(2)
    with psycopg.connect(shared_url()) as reader:
        reader.execute(f"LOCK TABLE {schema}.history_rest IN SHARE MODE".encode())
        settling = asyncio.create_task(world.run())
        await until_waiting(admin, schema)
        making = asyncio.create_task(prune(world))
        await until_waiting(admin, schema, 2)
        reader.rollback()
        await settling
        await making
    await world.run()
    assert await world.counts() == {("acme", "default", State.SUCCEEDED): 2}


async def until_waiting(admin: psycopg.Connection, schema: str, number: int = 1) -> None:
    """Wait until so many wait for a table of history, or nobody will any more."""
    async with asyncio.timeout(30):
        while True:
            row = admin.execute(
                "SELECT count(*) FROM pg_locks JOIN pg_class c ON c.oid = relation"
                " WHERE NOT granted AND c.relname LIKE 'history%%' AND relnamespace = %s::regnamespace",
                (schema,),
            ).fetchone()
            assert row is not None
            if row[0] >= number:
                return
            await asyncio.sleep(0.005)


async def test_a_reader_of_a_day_that_is_over_delays_its_removal_and_nobody_else(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """S52: a backup that holds every table stops no settlement; the day goes when it has ended."""
    await prune(world)
    await world.enqueue()
    await world.run()
    world.advance(9 * DAY_SECONDS)
    with psycopg.connect(shared_url()) as backup:
        count(backup, schema, "history")
        assert await prune(world) == PruneReply(jobs=1)  # row by row, beside the reader
        await world.enqueue()
        await world.run()
        assert "20270115" in days(admin, schema)
    await prune(world)
    assert "20270115" not in days(admin, schema)


async def test_two_who_prune_at_once_remove_everything_once(world: World) -> None:
    """S52: the counts stay exact whoever comes first, and nobody waits for the other forever."""
    await prune(world)
    for job in await world.enqueue_many(50):
        await world.cancel(job.id)
    for job in await world.enqueue_many(50):
        await world.condemn(job.id)
    world.advance(40 * DAY_SECONDS)
    replies = await asyncio.gather(*(prune(world, limit=30) for _ in range(6)))
    while (await prune(world)).is_partial:
        pass
    assert sum(reply.jobs for reply in replies) <= 100
    assert await world.counts() == {}
    assert await world.find_all() == []


async def test_a_day_dropped_between_two_looks_at_it_is_nobodys_failure(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """S52: another host drops a day after a pass has read its bounds, before it asks for the size."""
    await world.enqueue()
    await world.run()
    world.advance(40 * DAY_SECONDS)
    day = f"{schema}.history_20270116"
    request = PruneRequest(scope=Scope("acme"), retention=Retention(), limit=10)
    with psycopg.connect(shared_url()) as first:
        first.execute(f"LOCK TABLE {day} IN ACCESS EXCLUSIVE MODE".encode())
        passing = asyncio.create_task(world.store.upkeep.prune(request))
        await until_waiting(admin, schema)
        dropping = asyncio.create_task(drop_table(day))
        await until_waiting(admin, schema, 2)
    await dropping
    assert numbers_of(await passing) == PruneReply(jobs=1)


async def drop_table(name: str) -> None:
    """Drop a table as another host does, which waits for its lock."""
    async with await psycopg.AsyncConnection.connect(shared_url()) as connection:
        await connection.execute(f"DROP TABLE {name}".encode())


async def test_a_schema_beside_ours_is_left_alone(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """S52: another installation's tables have the same names; nothing reaches across."""
    other = f'"{schema} o\'ther %"'
    admin.execute(f"DROP SCHEMA IF EXISTS {other} CASCADE".encode())
    neighbour = PostgresStore(url_of(f"{schema}%20o'ther%20%25"), world.clock.now)
    try:
        await neighbour.upkeep.migrate()
        beside = World(neighbour, world.clock)
        await beside.enqueue_many(2)
        job = await beside.run()
        sight = await beside.sight()
        await world.enqueue_many(3)
        await world.run()
        await world.store.upkeep.migrate()
        assert (await prune(world, succeeded=0)).jobs == 1
        assert await beside.sight() == sight
        assert await beside.find_all(states=frozenset({State.SUCCEEDED})) == [job]
        world.advance(10 * DAY_SECONDS)
        assert (await prune(beside)).jobs == 1
        await beside.check_invariants()
    finally:
        await neighbour.upkeep.aclose()
        admin.execute(f"DROP SCHEMA IF EXISTS {other} CASCADE".encode())


@pytest.mark.parametrize("is_archived", [False, True])
async def test_early_the_oldest_day_goes_with_its_table_and_nothing_of_today(
    world: World, schema: str, admin: psycopg.Connection, *, is_archived: bool
) -> None:
    """S126: only a table that is dropped gives its space back; archived jobs leave it one by one."""
    drop_days(admin, schema)
    ids = []
    for _ in range(3):
        await prune(world)
        await world.enqueue_many(2)
        ids += [(await world.run()).id for _ in range(2)]
        world.advance(DAY_SECONDS)
    world.advance(-DAY_SECONDS)
    assert list(days(admin, schema))[:3] == ["20270115", "20270116", "20270117"]
    mark, left = NO_MARK, []
    for _ in range(6):
        request = PruneRequest(
            scope=ALL, retention=Retention(), limit=1, mark=mark, is_archived=is_archived, is_early=True
        )
        mark = (await world.store.upkeep.prune(request)).mark
        left.append(sum([await world.is_known(id) for id in ids]))
        assert (left[-1] > 4) == ("20270115" in days(admin, schema))
    assert sorted(set(left), reverse=True) == ([5, 4, 3, 2] if is_archived else [4, 2])
    assert days(admin, schema)["20270117"] == 2
