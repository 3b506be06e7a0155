"""SIGKILL at any moment, in mid-transaction too: nothing acknowledged is lost, nothing happens twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from fairlane.store.sqlite.store import SqliteStore
from tests.faults.campaign import Actor, RealClock, recorded, seeded, times, verify
from tests.faults.processes import Child, Start

KILLS = 8


async def test_a_killed_process_loses_nothing_that_it_was_told_is_durable(
    tmp_path: Path, start: Start
) -> None:
    """Two at a time use one file; one is killed while the other works on."""
    draw, file = seeded(), tmp_path / "fairlane.db"
    ledgers: list[Path] = []
    alive: list[Child] = []
    for _ in range(times(KILLS)):
        while len(alive) < 2:
            alive.append(start("churn", file, draw.getrandbits(32)))
            alive[-1].begin()
            ledgers.append(alive[-1].ledger)
        victim = alive.pop(draw.randrange(2))
        victim.steps(draw.randint(1, 60))
        victim.kill()
        if draw.random() < 0.3:  # nobody has the file open now: the next one must recover it
            alive.pop().kill()
    for child in alive:
        child.kill()

    await verify(file, recorded(ledgers))

    clock, records = RealClock(), recorded(ledgers)
    store = SqliteStore(f"sqlite:///{file}", clock=clock.now)
    await Actor(store, records.append, clock).drain()
    await store.upkeep.aclose()
    jobs = await verify(file, records, drained=True)
    kinds = Counter(type(one).__name__ for one in records)
    print(f"{len(ledgers)} kills, {len(jobs)} jobs, {kinds}")
    assert kinds["Started"] > len(ledgers)
    assert kinds["Stale"] > len(ledgers)
