"""Every verb that changes single jobs touches few rows, however many there are and whatever the planner knew.

Plans are made on an empty, vacuumed schema and kept, as in `test_plans`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from uuid import uuid4

import msgspec
import pytest

from fairlane.model.instants import SECOND
from fairlane.store.contract.claims import WorkerRequest
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL, World
from tests.oracle.clock import DrivenClock
from tests.servers.postgres import HASTY, MEMORY, PostgresServer

WAITING = 10_000
RUNNING = 2_000
FEW = 300
"""Rows that one verb may touch, with all its look-ups of turns, keys and rules."""

_TOUCHED = """
SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint FROM pg_stat_user_tables
WHERE schemaname = 'moves'
"""
_TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'moves'::regnamespace AND relkind = 'r'"

_keys = count()


@pytest.fixture
async def full() -> AsyncIterator[World]:
    """A store whose plans were made while it was empty, and which is full now."""
    server = PostgresServer(*HASTY, "autovacuum=off", folder=MEMORY)
    server.start()
    clock = DrivenClock()
    store = PostgresStore(f"{server.url}&schema=moves&pool=1", clock.now)
    await store.upkeep.migrate()
    world = World(store, clock)
    for _ in range(8):  # more often than the planner thinks twice
        for verb in VERBS.values():
            await verb(world)
    async with store._server.apart() as connection:
        for table in await connection.fetch(_TABLES):
            await connection.execute(f"VACUUM ANALYZE moves.{table[0]}")
    for _ in range(8):
        for verb in VERBS.values():
            await verb(world)
    for number in range(WAITING // 1_000):
        waits = [world.new(f"t{n % 50}", delay=n % 3 * 3_600 * SECOND) for n in range(999)]
        await world.send(world.new(idempotency_key=f"kept {number}"), *waits)
    for _ in range(RUNNING // 1_000):
        await world.claim(1_000, worker="busy", lease=10_000 * SECOND)
    yield world
    await store.upkeep.aclose()
    server.close()


async def touched(world: World) -> int:
    """Count the rows that were read so far by the store's one connection."""
    server = world.store._server  # type: ignore[attr-defined]
    await server.fetch("SELECT pg_stat_force_next_flush()")
    await server.fetch("SELECT pg_stat_clear_snapshot()")
    return int(await server.value(_TOUCHED))


async def enqueue(world: World) -> None:
    """One job with both keys, and the same again."""
    keys = {"idempotency_key": f"k{next(_keys)}", "dedup_key": f"d{next(_keys)}"}
    await world.send(world.new(**keys))
    await world.send(world.new(**keys))


async def renew(world: World) -> None:
    """Keep a claim, and ask for one that nobody holds."""
    await world.enqueue("renewing", priority=100)
    claim = await world.claim_one()
    strange = msgspec.structs.replace(claim, job=msgspec.structs.replace(claim.job, id=uuid4()))
    assert (await world.renew(claim, strange)).stale == (strange.job.id,)
    await world.settle(claim)


async def cancel(world: World) -> None:
    """Cancel what waits and what runs."""
    job = await world.enqueue("cancelling", delay=3_600 * SECOND)
    await world.cancel(job.id)
    await world.enqueue("cancelling", priority=100)
    claim = await world.claim_one()
    await world.cancel(claim.job.id)
    await world.store.claims.asked_to_cancel(WorkerRequest(scope=ALL, worker="w1"))
    await world.settle(claim)


async def change(world: World) -> None:
    """Edit, hurry and condemn one job."""
    job = await world.enqueue("changing", delay=3_600 * SECOND)
    await world.edit(job.id, priority=5)
    await world.run_now(job.id)
    await world.condemn(job.id)


async def reclaim(world: World) -> None:
    """Take back a claim."""
    await world.enqueue("losing", priority=100)
    await world.claim_one(lease=SECOND)
    world.advance(2)
    assert len((await world.reclaim()).lost) == 1
    (claim,) = await world.claim(1, isolates=True)
    await world.settle(claim)


async def expire(world: World) -> None:
    """Let a job expire."""
    await world.enqueue("expiring", delay=3_600 * SECOND, expires_in=SECOND)
    world.advance(2)
    assert await world.expire() == 1


async def look(world: World) -> None:
    """Get one job by its id and say why it waits."""
    job = await world.enqueue("looking", delay=3_600 * SECOND)
    assert (await world.get(job.id)).tenant == "looking"
    assert not await world.is_known(uuid4())
    await world.explain(job.id)
    await world.cancel(job.id)


VERBS: dict[str, Callable[[World], Awaitable[None]]] = {
    "enqueue": enqueue,
    "renew": renew,
    "cancel": cancel,
    "change": change,
    "reclaim": reclaim,
    "expire": expire,
    "look": look,
}


async def test_a_verb_about_one_job_touches_few_rows(full: World) -> None:
    """Among thousands that wait or run."""
    read = {}
    for name, verb in VERBS.items():
        before = await touched(full)
        await verb(full)
        read[name] = await touched(full) - before
    assert {name: rows for name, rows in read.items() if rows >= FEW} == {}
