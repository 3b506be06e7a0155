"""One forgotten snapshot keeps every dead row: claims and settlements must not read them again and again.

What is measured is pages read for each job, which no other load on the machine changes. Ten minutes of it:
`FAIRLANE_SNAPSHOT_ROUNDS=400 pytest tests/postgres/test_old_snapshot.py -s`, which prints jobs a second, too.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from fairlane.model.layers import Kind, TenantRules
from fairlane.model.limits import Limits, Rate
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import World
from tests.oracle.clock import DrivenClock
from tests.servers.postgres import HASTY, MEMORY, PostgresServer

ROUNDS = int(os.environ.get("FAIRLANE_SNAPSHOT_ROUNDS", "10"))
BATCHES = 20
BATCH = 20
TENANTS = 20

_PAGES = """
SELECT sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0))::bigint
FROM pg_statio_user_tables WHERE schemaname = 'churn'
"""


@pytest.fixture(scope="module")
def churned() -> Iterator[PostgresServer]:
    """A server of the module's own."""
    server = PostgresServer(*HASTY, folder=MEMORY)
    server.start()
    yield server
    server.close()


@pytest.fixture
async def store(churned: PostgresServer) -> AsyncIterator[PostgresStore]:
    """A store on it with one connection, whose counts are then whole."""
    store = PostgresStore(f"{churned.url}&schema=churn&pool=1")
    async with store._server.apart() as connection:
        await connection.execute("DROP SCHEMA IF EXISTS churn CASCADE")
    await store.upkeep.migrate()
    yield store
    await store.upkeep.aclose()


async def churn(store: PostgresStore, world: World) -> tuple[float, float]:
    """Put jobs in and take them out, half of them of one tenant; give pages read and jobs done a second."""
    before, start = await _pages(store), time.perf_counter()
    for _ in range(BATCHES):
        tenants = ("whale" if number % 2 else f"t{number % TENANTS}" for number in range(BATCH))
        await world.send(*(world.new(tenant) for tenant in tenants))
        claims = await world.claim(BATCH)
        assert len(claims) == BATCH
        await world.settle_reply(*map(world.verdict, claims))
    jobs = BATCHES * BATCH
    return (await _pages(store) - before) / jobs, jobs / (time.perf_counter() - start)


async def _pages(store: PostgresStore) -> int:
    await store._server.fetch("SELECT pg_stat_force_next_flush()")
    return int(await store._server.value(_PAGES))


@pytest.mark.parametrize("way", ["many at once", "one after the other"])
async def test_an_old_snapshot_does_not_slow_claims_and_settlements(store: PostgresStore, way: str) -> None:
    """After thousands of jobs under one open snapshot each still reads at most a quarter more pages."""
    world = World(store, DrivenClock())
    if way == "one after the other":
        never_binds = Limits(rate=Rate(1_000_000, "second", burst=100_000))  # but must be asked
        await world.declare(Kind.TENANT, "whale", TenantRules(limits={"*": never_binds}))
    for _ in range(2):
        await churn(store, world)
    async with store._server.apart() as old:
        await old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await old.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        await old.fetch("SELECT count(*) FROM churn.job")
        rounds = [await churn(store, world) for _ in range(ROUNDS)]
        await old.execute("ROLLBACK")
    print("\npages a job, jobs a second:", *(f"{pages:.1f} {rate:.0f}" for pages, rate in rounds), sep="\n")
    first, last = (sum(pages for pages, _ in some) for some in (rounds[:2], rounds[-2:]))
    assert last <= 1.25 * first
