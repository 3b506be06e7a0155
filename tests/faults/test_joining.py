"""SIGKILL in the middle of an application's transaction: its jobs are there exactly if its own rows are."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import apsw
import pytest

from fairlane.model.job import JobRecord
from fairlane.store.sqlite.store import SqliteStore
from tests.faults.campaign import Actor, seeded, times
from tests.faults.processes import Child, Start
from tests.invariants import check

KILLS = 8


def prepared(file: Path) -> None:
    """Make the store's file, with a table of the application in it."""
    asyncio.run(_open_and_close(file))
    own = apsw.Connection(str(file))
    own.execute("CREATE TABLE orders (job BLOB PRIMARY KEY)")
    own.close()


async def _open_and_close(file: Path) -> None:
    store = SqliteStore(f"sqlite:///{file}")
    await Actor(store).find_all()
    await store.upkeep.aclose()


async def whole(file: Path) -> list[JobRecord]:
    """Open the file afresh: it is whole, its books balance; return its jobs."""
    assert read(file, "PRAGMA integrity_check") == {"ok"}
    store = SqliteStore(f"sqlite:///{file}")
    await check(store)
    jobs = await Actor(store).find_all(page=500)
    await store.upkeep.aclose()
    return jobs


def read(file: Path, statement: str) -> set[Any]:
    """Read one column."""
    own = apsw.Connection(str(file))
    found = {value for (value,) in own.execute(statement)}
    own.close()
    return found


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_killed_process_leaves_its_job_exactly_if_it_had_committed(
    tmp_path: Path, start: Start, is_committed: bool
) -> None:
    """In the middle of its transaction it leaves nothing, and nobody has to wait for it."""
    file = tmp_path / "fairlane.db"
    prepared(file)
    child = start("join_once", file, int(is_committed))
    child.begin()
    child.steps(1)
    child.kill()
    assert len(asyncio.run(whole(file))) == is_committed


def test_killed_transactions_leave_both_their_rows_and_their_jobs_or_neither(
    tmp_path: Path, start: Start
) -> None:
    """Three processes at a time on one file; one is killed while the others go on."""
    draw, file = seeded(), tmp_path / "fairlane.db"
    prepared(file)
    alive: list[Child] = []
    for _ in range(times(KILLS)):
        while len(alive) < 3:
            alive.append(start("join", file, draw.getrandbits(32)))
            alive[-1].begin()
        victim = alive.pop(draw.randrange(3))
        victim.steps(draw.randint(1, 40))
        victim.kill()
    for child in alive:
        child.kill()
    jobs = asyncio.run(whole(file))
    assert {job.id.bytes for job in jobs} == read(file, "SELECT job FROM orders")
    assert len(jobs) > times(KILLS)
    print(f"{len(jobs)} jobs")
