"""Tell what a waiting job with a payload of 200 bytes takes of a Redis server, all indexes included.

``python -m tests.servers.redis_memory [JOBS]``: jobs of one tenant, of a thousand, and each of its own.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from redis import Redis

from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.opening import open_store
from tests.contract.world import ALL, World
from tests.oracle.clock import DrivenClock
from tests.servers.valkey import HASTY, MEMORY, ValkeyServer

MOST: Final = 900
"""How many bytes a job may take."""

_BATCH: Final = 1_000


async def bytes_of_a_job(server: ValkeyServer, jobs: int, tenants: int) -> float:
    """Fill an empty server, and divide what it takes more than after the first batch."""
    clock = DrivenClock()
    world = World(open_store(server.url, clock=clock), clock)
    taken = []
    with Redis.from_url(server.url) as client:
        for first in range(0, jobs + _BATCH, _BATCH):
            numbers = range(first, first + _BATCH)
            news = (world.new(f"tenant{number % tenants}", payload=b"x" * 200) for number in numbers)
            await world.store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=tuple(news)))
            taken.append(int(client.info("memory")["used_memory"]))
    await world.store.upkeep.aclose()
    return (taken[-1] - taken[0]) / jobs


async def main(jobs: int) -> int:
    """Run it; 0 if no job takes more than it may."""
    found = []
    for tenants in (1, 1_000, jobs + _BATCH):
        server = ValkeyServer(*HASTY, folder=MEMORY)
        server.start()
        try:
            found.append(await bytes_of_a_job(server, jobs, tenants))
        finally:
            server.remove()
        sys.stdout.write(f"{jobs:,} jobs of {tenants:,} tenants: {found[-1]:.0f} bytes each\n")
    return int(max(found) > MOST)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*(map(int, sys.argv[1:] or ["100000"])))))
