"""A claim and a settlement read as many rows as they move, however much waits, whatever the planner knew.

Plans are made on an empty, vacuumed schema, where every wrong plan is as cheap as the right one, and cached:
nothing is analysed after. A million jobs, in a minute or two:
``FAIRLANE_PLAN_JOBS=1000000 pytest -s tests/postgres/test_plans.py``.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator

import pytest

from fairlane.model.instants import DAY, HOUR, SECOND
from fairlane.model.job import Claim
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import QueueRules, Subject, SubjectKind, TenantRules
from fairlane.store.contract.claims import QueueRequest, SettleRequest
from fairlane.store.postgres.claims.claim import QueueClaim, claim_queue
from fairlane.store.postgres.claims.settle import apply
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL, World
from tests.oracle.clock import START, DrivenClock
from tests.servers.postgres import HASTY, MEMORY, PostgresServer

JOBS = int(os.environ.get("FAIRLANE_PLAN_JOBS", "20000"))
FEW = 200
BATCH = 20
OFTEN = Rate(1_000_000, "second", burst=100_000)
"""Never binds, and lets claims go one job after the other."""
LONG = 600
"""Seconds that filling may take."""

_TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'plans'::regnamespace AND relkind = 'r'"
_TOUCHED = """
SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint FROM pg_stat_xact_user_tables
WHERE schemaname = 'plans'
"""
_CALLED = """
SELECT funcname, calls FROM pg_stat_xact_user_functions
WHERE schemaname = 'plans' AND funcname = any('{choose_fairly, choose_one_each, limits_of, stride_of}')
"""
_FILL = """
INSERT INTO plans.job (id, tenant, queue, task, state, payload, checksum, version, priority, enqueued_at,
                       run_at, sort_key, dedup_until, max_attempts, at_most_once, metadata)
SELECT gen_random_uuid(), 't' || n % $2::int, 'default', 'k' || n % 3, 'ready', '', 0, 1, 0, $3::bigint + n,
       $3 + n, $3 + n, 'settled', 5, false, '{}'
FROM generate_series(1, $1::int) AS n
"""
_KEYS = """
INSERT INTO plans.dedup (tenant, task, key, id)
SELECT 'u' || n, 'k0', 'one', gen_random_uuid() FROM generate_series(1, $1::int) AS n
"""
_DELTAS = """
INSERT INTO plans.delta (ord, queue, tenant, task, ready, head_key, head_id)
SELECT row_number() OVER (), 'default', tenant, task, count(*), min(sort_key),
       (array_agg(id ORDER BY sort_key, id))[1]
FROM plans.job WHERE enqueued_at > $1 GROUP BY tenant, task
"""


@pytest.fixture(scope="module")
def idle() -> Iterator[PostgresServer]:
    """A server on which nobody vacuums or analyses by himself."""
    server = PostgresServer(*HASTY, "autovacuum=off", folder=MEMORY)
    server.start()
    yield server
    server.close()


@pytest.fixture
async def store(idle: PostgresServer) -> AsyncIterator[PostgresStore]:
    """An empty store with one connection, whose plans are made and cached."""
    clock = DrivenClock()
    store = PostgresStore(f"{idle.url}&schema=plans&pool=1", clock.now)
    async with store._server.apart() as connection:
        await connection.execute("DROP SCHEMA IF EXISTS plans CASCADE")
    await store.upkeep.migrate()
    world = World(store, clock)
    for number in range(8):  # more often than the planner thinks twice
        await world.enqueue(f"t{number % 2}")
        await world.settle(await world.claim_one())
    async with store._server.apart() as connection:
        for table in await connection.fetch(_TABLES):
            await connection.execute(f"VACUUM ANALYZE plans.{table[0]}")
    for _ in range(8):
        await world.enqueue()
        await world.settle(await world.claim_one())
    yield store
    await store.upkeep.aclose()


async def fill(store: PostgresStore, jobs: int, tenants: int, since: int) -> None:
    """Let jobs wait, and apply the deltas that say so."""
    async with store._server.transaction() as connection:
        await connection.execute("SET LOCAL statement_timeout = 0")
        await connection.execute(_FILL, jobs, tenants, since, timeout=LONG)
        await connection.execute(_DELTAS, since, timeout=LONG)
        await connection.execute("SELECT plans.lock_queue('default')")
        await connection.execute("SELECT plans.apply_all_deltas($1, 'default')", since, timeout=LONG)


async def touched(store: PostgresStore, ahead: int = 0) -> tuple[int, int]:
    """Claim a batch and settle it; return how many rows each has read."""
    async with store._server.transaction() as connection:
        ask = QueueClaim(queue_request=QueueRequest("default", BATCH), total=BATCH, ahead=ahead)
        before = await connection.fetchval(_TOUCHED)
        claims = (await claim_queue(connection, store._server, ask)).claims
        between = await connection.fetchval(_TOUCHED)
        assert len(claims) == BATCH
        await _settle(connection, store, claims)
        return between - before, await connection.fetchval(_TOUCHED) - between


async def _settle(connection: object, store: PostgresStore, claims: tuple[Claim, ...]) -> None:
    verdicts = tuple(map(World(store, DrivenClock()).verdict, claims))
    request = SettleRequest(scope=ALL, worker="", settlements=verdicts)
    answer = await apply(connection, "plans", START, request, verdicts)  # type: ignore[arg-type]
    assert len(answer.states) == len(claims)


async def plan_anew(store: PostgresStore, limits: Limits, ahead: int = 0) -> None:
    """Let a claim under these limits, which may go another way, be planned while nothing waits."""
    clock = DrivenClock()
    clock.advance(HOUR / SECOND)  # ids are made by it
    world = World(store, clock)
    await world.put({Subject(SubjectKind.QUEUE, "default"): QueueRules(limits)})
    await world.enqueue()
    await world.settle(await world.claim_one(ahead=ahead))


async def mislead(store: PostgresStore, *, is_empty: bool = False) -> None:
    """Let the planner believe that the indexes of ready and of running jobs are large and nearly empty.

    So they are when much was drained: their pages stay. Every tenant has one job, nearly all for another day;
    or there is none at all.
    """
    async with store._server.apart() as connection:
        for tenants in (1, JOBS // 4):
            await connection.execute("DELETE FROM plans.job")
            await connection.execute(_FILL, JOBS // 4, tenants, START + 1_000)
            await connection.execute("UPDATE plans.job SET state = 'running'")
        await connection.execute("UPDATE plans.job SET state = 'delayed', run_at = $1", START + DAY)
        await connection.execute(_FILL, 3, 3, START + 500)
        await connection.execute(_KEYS, FEW)
        if is_empty:
            await connection.execute("DELETE FROM plans.job")
        await connection.execute("ANALYZE plans.job, plans.dedup")


@pytest.mark.parametrize(
    ("tenants", "limits", "ahead"),
    [(1, Limits(), 0), (1_000, Limits(), 0), (1, Limits(rate=OFTEN), 0), (1, Limits(), BATCH)],
    ids=["1", "1000", "rate", "ahead"],
)
async def test_what_a_claim_and_a_settlement_read_does_not_grow_with_what_waits(
    store: PostgresStore, tenants: int, limits: Limits, ahead: int
) -> None:
    """The same number of rows, give or take, before a hundred thousand jobs and after."""
    await plan_anew(store, limits, ahead)
    await fill(store, FEW, min(tenants, FEW), START + 1_000)
    few = await touched(store, ahead)
    await fill(store, JOBS, tenants, START + 1_000_000)
    many = await touched(store, ahead)
    print(f"\n{tenants} tenants; rows read by a claim and by a settlement of {BATCH}:", end=" ")
    print(f"{few} while {FEW} jobs wait, {many} while {JOBS:,} do")
    assert few[0] <= many[0] + 10 * BATCH
    assert many[0] <= 2 * few[0] + 2 * BATCH, f"a claim read {few[0]} rows, then {many[0]}"
    assert many[1] <= 2 * few[1] + 2 * BATCH, f"a settlement read {few[1]} rows, then {many[1]}"


@pytest.mark.parametrize(
    ("limits", "is_empty"),
    [
        (Limits(), False),
        (Limits(running=1_000), False),
        (Limits(rate=OFTEN), False),
        (Limits(rate=OFTEN), True),
    ],
    ids=["none", "limit", "rate", "rate, empty"],
)
async def test_statistics_of_a_drained_queue_lead_to_no_other_index(
    store: PostgresStore, limits: Limits, *, is_empty: bool
) -> None:
    """All of a tenant's jobs would be read for each claim until somebody analyses again."""
    await mislead(store, is_empty=is_empty)
    await plan_anew(store, limits)
    await fill(store, FEW, 1, START + 1_000_000)
    few = await touched(store)
    await fill(store, JOBS, 1, START + 2_000_000)
    many = await touched(store)
    assert many[0] <= 2 * few[0] + 2 * BATCH, f"a claim read {few[0]} rows, then {many[0]}"


@pytest.mark.parametrize("limits", [Limits(running=1), Limits(rate=Rate(1, "hour"))], ids=["limit", "rate"])
async def test_one_tenant_at_its_limit_costs_the_others_nothing(store: PostgresStore, limits: Limits) -> None:
    """Who is next has no limits of his own: nobody's are asked for, and the short way is taken."""
    clock = DrivenClock()
    clock.advance(HOUR / SECOND)  # ids are made by it
    world = World(store, clock)
    await world.put({Subject(SubjectKind.TENANT, "held"): TenantRules(weight=2, limits={"*": limits})})
    await world.enqueue_many(3, "held")
    assert len(await world.claim(3)) == 1
    await fill(store, FEW, 2 * BATCH, START + 1_000)
    async with store._server.transaction() as connection:
        await connection.execute("SET LOCAL track_functions = 'pl'")
        ask = QueueClaim(queue_request=QueueRequest("default", BATCH), total=BATCH)
        assert len((await claim_queue(connection, store._server, ask)).claims) == BATCH
        called = dict(await connection.fetch(_CALLED))
    assert called == {"choose_one_each": 1, "limits_of": 2, "stride_of": 1}


async def test_an_expired_head_is_not_handed_out_whatever_the_plan(
    idle: PostgresServer, store: PostgresStore
) -> None:
    """S21: the head is the job with the lowest key, also where rows are read in the order of enqueueing."""
    clock = DrivenClock()
    world = World(PostgresStore(f"{idle.url}&schema=plans&pool=1", clock.now), clock)
    await world.put({Subject(SubjectKind.QUEUE, "default"): QueueRules(Limits(rate=OFTEN))})
    await mislead(store)
    clock.advance(HOUR / SECOND)  # ids are made by it
    lasting = await world.enqueue()
    await world.enqueue(priority=5, expires_in=SECOND)
    clock.advance(2)
    assert [claim.job.id for claim in await world.claim(2)] == [lasting.id]
    await world.store.upkeep.aclose()


@pytest.mark.parametrize("tenants", [1, 10])
async def test_jobs_come_in_their_order_whatever_the_plan(
    idle: PostgresServer, store: PostgresStore, tenants: int
) -> None:
    """S20: by priority, also where rows are read in another order and sorted."""
    async with store._server.apart() as connection:
        await connection.execute("DROP INDEX plans.job_ready")
    clock = DrivenClock()
    world = World(PostgresStore(f"{idle.url}&schema=plans&pool=1", clock.now), clock)
    clock.advance(HOUR / SECOND)  # ids are made by it
    for priority in range(40):
        await world.enqueue(f"t{priority % tenants}", priority=priority)
    claims = [claim.job for _ in range(4) for claim in await world.claim(10)]
    for number in range(tenants):
        priorities = [job.priority for job in claims if job.tenant == f"t{number}"]
        assert priorities == sorted(range(number, 40, tenants), reverse=True)
    await world.store.upkeep.aclose()
