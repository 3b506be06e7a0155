"""A breaker that opens waits for claims under way, so that none that began before it ends after it (S58)."""

from __future__ import annotations

import asyncio
import time

import psycopg

from tests.contract.breakers.scene import guard, phase_of, report
from tests.contract.world import World
from tests.servers.postgres import shared_url


async def test_what_opens_it_waits_for_a_claim_under_way(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """S58: that claim counts as before it; the next one finds it open."""
    await guard(world)
    await world.enqueue_many(3, task="send")
    values = "'w1', 60000000, 'default', 1, 1, 0, false, NULL, false, 0, 0"
    claim = f"SELECT id FROM {schema}.claim({world.now}, {values})"  # noqa: S608 (ours)
    held_up = "SELECT count(*) FROM pg_locks WHERE NOT granted AND %s = any(pg_blocking_pids(pid))"
    watcher = await psycopg.AsyncConnection.connect(shared_url(), autocommit=True)
    async with watcher:
        with admin.transaction():
            claimed = admin.execute(claim.encode()).fetchall()
            opening = asyncio.ensure_future(report(world, failed=5))
            deadline = time.monotonic() + 20
            is_waiting = False
            while not is_waiting:
                assert not opening.done(), "it has not waited"
                assert time.monotonic() < deadline
                row = await (await watcher.execute(held_up, (admin.info.backend_pid,))).fetchone()
                is_waiting = row is not None and row[0] > 0
        await asyncio.wait_for(opening, 20)
    assert len(claimed) >= 1
    assert await phase_of(world) == "open"
    assert await world.claim(9) == []
