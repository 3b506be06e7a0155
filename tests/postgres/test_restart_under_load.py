"""Real workers outlast restarts and a kill of the server; nothing is lost or settled twice (S63, S66)."""

from __future__ import annotations

from tests.faults.campaign import times
from tests.servers.restart_under_load import WORKERS, restart_under_load

OUTAGES = 2


async def test_workers_carry_on_through_a_restart_and_a_kill_of_the_server() -> None:
    """Every acknowledged job is there and was settled once; each worker logged each outage once."""
    account = await restart_under_load(times(600))
    assert account.acknowledged == account.found == times(600)
    assert (account.lost, account.settled_twice) == (0, 0)
    assert len(account.outages_logged) == WORKERS
    # Once each; two that follow each other before a worker has heard that the first is over are one to it.
    assert [count for count in account.outages_logged if not 1 <= count <= OUTAGES] == []
