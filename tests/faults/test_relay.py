"""SIGKILL of relays at any moment, also between the store's commit and the application's: nothing twice."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from uuid import UUID

from fairlane.store.sqlite.store import SqliteStore
from tests.faults.campaign import seeded, times
from tests.faults.processes import Child, Start
from tests.invariants import check
from tests.outbox.shop import PlainShop

KILLS = 10
TENANTS = ("acme", "bolt", "core")


def test_killed_relays_store_each_job_once_and_in_order(tmp_path: Path, start: Start) -> None:
    """Two at a time; one is killed while the other works on and the application adds."""
    draw, shop = seeded(), PlainShop(tmp_path)
    shop.app.jobs.count()  # the store's file is there
    shop.app.close()
    added: dict[str, list[UUID]] = defaultdict(list)
    loading = [start("relay", shop.jobs_file, 20) for _ in range(3)]
    alive: list[Child] = []
    half_done = 0
    for _ in range(times(KILLS)):
        while len(alive) < 2:
            alive.append(loading.pop(0))
            loading.append(start("relay", shop.jobs_file, draw.choice((1, 7, 20, 50))))
            alive[-1].begin()
        for n, id in enumerate(shop.fill(draw.randint(1, 150), *TENANTS)):
            added[TENANTS[n % len(TENANTS)]].append(id)
        victim = alive.pop(draw.randrange(2))
        victim.steps(draw.randint(1, 25))
        victim.kill()
        if draw.random() < 0.3:  # nobody is left: what is in both places now, a crash has left there
            alive.pop().kill()
            half_done += bool(set(shop.rows()) & {str(id) for id in shop.stored()})
    for child in [*alive, *loading]:
        child.stop()

    shop.relay().drain()
    assert shop.rows() == []
    assert shop.stored_by_tenant() == added
    shop.close()
    asyncio.run(_check(shop.jobs_file))
    print(f"{sum(map(len, added.values()))} jobs; {half_done} times rows were left whose jobs were stored")


async def _check(file: Path) -> None:
    store = SqliteStore(f"sqlite:///{file}")
    await check(store)
    await store.upkeep.aclose()
