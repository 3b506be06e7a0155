"""A server that stands still for longer than every lease, and goes on: nobody was away (S38, S66)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.faults.campaign import times
from tests.processes.conftest import Process
from tests.servers.postgres import PostgresServer
from tests.servers.restart_under_load import SETTINGS, Site, restart_under_load

FROZEN: Final = 2 * SETTINGS["lease"] + 1
"""Seconds: longer than a lease, and than the silence of all by which an outage is known."""


def family(server: PostgresServer) -> Iterator[int]:
    """Return all processes of a server."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").readlink() == server.data:
                yield int(entry.name)
        except OSError:
            continue


class FrozenSite(Site):
    """A server that is stopped in the middle of its work, as a machine that is suspended."""

    async def harm(self, processes: list[Process], total: int) -> None:
        """Let the server stand still at half of the work."""
        await self.until_started(processes, total // 2)
        frozen = list(family(self.server))
        for process in frozen:
            os.kill(process, signal.SIGSTOP)
        try:
            await asyncio.sleep(FROZEN)
        finally:
            for process in frozen:
                os.kill(process, signal.SIGCONT)


async def test_a_server_that_stood_still_past_all_leases_loses_nothing() -> None:
    """S38: workers report back before anything of theirs is reclaimed, and nothing is settled twice."""
    account = await restart_under_load(times(400), kind=FrozenSite)
    assert account.acknowledged == account.found == times(400)
    assert (account.lost, account.settled_twice) == (0, 0)
    assert account.reclaimed == 0
    assert all(count <= 1 for count in account.outages_logged)
