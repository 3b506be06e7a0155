"""Bulk writes store the same rows, and prefetched jobs are the same jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from fairlane.model.instants import SECOND
from fairlane.store.opening import open_store
from fairlane.store.sqlite.query import ROWS, write_many
from tests.contract.world import World
from tests.oracle.clock import DrivenClock

INSERT = "INSERT INTO pair (left, right, kind) VALUES (?1, ?2, 'new')"


@pytest.mark.parametrize("count", [0, 1, ROWS - 1, ROWS, 2 * ROWS + 3])
@pytest.mark.parametrize("statement", [INSERT, f"{INSERT} ON CONFLICT DO NOTHING"])
def test_every_row_is_written_once_however_many_there_are(statement: str, count: int) -> None:
    """In order: fifty at a time, the rest one by one; other statements always one by one."""
    db = apsw.Connection(":memory:")
    db.execute("CREATE TABLE pair (left INTEGER PRIMARY KEY, right BLOB, kind TEXT)")
    rows = [(number, b"%d" % number) for number in range(count)]
    write_many(db, statement, rows)
    assert db.execute("SELECT * FROM pair ORDER BY rowid").fetchall() == [(*row, "new") for row in rows]


@pytest.fixture(params=["one writer", "two in turn"])
async def worlds(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[list[World]]:
    """One or two stores on one file; of two, each drops its cached tenants after the other's write."""
    clock = DrivenClock()
    count = 1 if request.param == "one writer" else 2
    found = [World(open_store(f"sqlite:///{tmp_path}/fairlane.db", clock=clock), clock) for _ in range(count)]
    found[-1]._ids = found[0]._ids
    yield found
    await found[0].check_invariants()
    for world in found:
        await world.store.upkeep.aclose()


async def test_tenants_read_ahead_are_served_in_the_fair_order(worlds: list[World]) -> None:
    """S41: one job of each tenant in turn, however many jobs were prefetched."""
    first, last = worlds[0], worlds[-1]
    tenants = [f"t{number:02}" for number in range(70)]  # more than one page
    jobs = [first.new(tenant) for _ in range(3) for tenant in tenants]
    await first.send(*jobs)
    found = []
    for world, most in ((first, 50), (last, 7), (first, 100), (last, 99)):
        claims = await world.claim(most)
        found += [claim.job.id for claim in claims]
        await world.settle_reply(*map(world.verdict, claims))
    assert found == [job.id for job in jobs]


async def test_a_job_read_ahead_that_has_expired_makes_way_for_the_next(worlds: list[World]) -> None:
    """S21: the job behind it is served in its place, and the third after that."""
    first, last = worlds[0], worlds[-1]
    tenants = [f"t{number}" for number in range(5)]
    jobs = [first.new(tenant) for _ in range(2) for tenant in tenants]
    await first.send(*(first.new(tenant, expires_in=SECOND) for tenant in tenants), *jobs)
    first.advance(2)
    found = [claim.job.id for world in (last, first) for claim in await world.claim(5)]
    assert found == [job.id for job in jobs]
