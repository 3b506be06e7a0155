"""One forgotten snapshot keeps every dead row: claims and settlements must not read them again and again.

What is measured is pages read for each job, which no other load on the machine changes; `old_snapshot` says
how, and goes on for as long as one likes.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres.old_snapshot import BATCH, BATCHES, FLAT, churning
from tests.servers.postgres import HASTY, MEMORY, PostgresServer

ROUNDS = 6


@pytest.fixture(scope="module")
def churned() -> Iterator[str]:
    """A server of the module's own, where nobody vacuums: the pages that he reads would be counted, too."""
    server = PostgresServer(*HASTY, "autovacuum=off", folder=MEMORY)
    server.start()
    yield f"{server.url}&schema=churn"
    server.close()


@pytest.mark.parametrize("way", FLAT)
async def test_an_old_snapshot_does_not_slow_claims_and_settlements(churned: str, way: str) -> None:
    """After thousands of jobs under one open snapshot each still reads at most a quarter more pages."""
    async with churning(churned, way) as churn:
        rounds = [await churn.round() for _ in range(ROUNDS)]
    assert rounds[-1].pages <= 1.25 * rounds[0].pages, [round(one.pages) for one in rounds]


async def test_a_sweep_does_not_read_what_an_old_snapshot_keeps(churned: str) -> None:
    """It forgets twenty tenants and their strands, each of which has a dead row version for every claim."""
    async with churning(churned, "many at once") as churn:
        first = await churn.forget()
        for _ in range(ROUNDS):
            await churn.round()
        last = await churn.forget()
    assert last <= first + ROUNDS * BATCHES * BATCH / 4, (first, last)
