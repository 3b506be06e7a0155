"""Let many jobs come, run and go, and list what a Redis server still keeps: configuration and counters alone.

``python -m tests.servers.redis_census [JOBS] [TENANTS]``: a million jobs of 10,000 tenants, some minutes.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from typing import Final

from redis import Redis

from fairlane.model.instants import SECOND
from fairlane.store.contract.claims import ClaimReply, ClaimRequest, QueueRequest, SettleRequest
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.opening import open_store
from tests.contract.world import ALL, World
from tests.oracle.clock import DrivenClock
from tests.redis.test_keys import JOURNALS, LASTING, OWED, kinds
from tests.servers.valkey import HASTY, MEMORY, ValkeyServer

_BATCH: Final = 1_000
_SIZES: Final[dict[bytes | str, str]] = {
    b"hash": "HLEN",
    b"zset": "ZCARD",
    b"list": "LLEN",
    b"stream": "XLEN",
}


async def come_and_go(world: World, jobs: int, tenants: int) -> None:
    """Enqueue with keys and tags of callers, run and settle all of it, a batch at a time."""
    for first in range(0, jobs, _BATCH):
        numbers = range(first, min(jobs, first + _BATCH))
        news = [
            world.new(
                f"t{number % tenants}",
                task=f"task{number % 4}",
                idempotency_key=f"k{number}",
                correlation_id=f"c{number // 3}",
            )
            for number in numbers
        ]
        await world.store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=tuple(news)))
        await _run(world)
        if first % (100 * _BATCH) == 0:
            await _prune(world)
    await _prune(world)


async def _run(world: World) -> None:
    """Claim and settle until nothing is ready."""
    claim = ClaimRequest(
        scope=ALL, worker="w1", lease=60 * SECOND, queue_requests=(QueueRequest("default", 100),), total=100
    )
    reply: ClaimReply | None = await world.store.claims.claim(claim)
    while reply is not None and (reply.claims or reply.is_partial):
        settlements = tuple(map(world.verdict, reply.claims))
        settling = SettleRequest(scope=ALL, worker="w1", settlements=settlements, claim=claim)
        reply = (await world.store.claims.settle(settling)).claimed


async def _prune(world: World) -> None:
    """Remove all that retention lets go."""
    while (await world.prune(succeeded=0, results=0, keys=0)).is_partial:
        pass


def listed(client: Redis) -> Counter[str]:
    """Count the entries of each kind of key."""
    found: Counter[str] = Counter()
    for key in client.scan_iter(count=10_000):
        (kind,) = kinds([key])
        command = _SIZES.get(client.type(key))
        found[kind] += 1 if command is None else client.execute_command(command, key)  # type: ignore[no-untyped-call]
    return found


async def main(jobs: int, tenants: int) -> int:
    """Run it; 0 if nothing is left that should not be."""
    server = ValkeyServer(*HASTY, folder=MEMORY)
    server.start()
    try:
        with Redis.from_url(server.url) as client:
            empty = client.info("memory")["used_memory"]
            world = World(open_store(server.url), DrivenClock())
            await come_and_go(world, jobs, tenants)
            await world.check_invariants()
            await world.store.upkeep.aclose()
            left = listed(client)
            grown = client.info("memory")["used_memory"] - empty
    finally:
        server.remove()
    sys.stdout.write(
        f"{jobs:,} jobs of {tenants:,} tenants came and went; {grown / 1e6:.1f} MB more than before\n"
    )
    for kind, number in sorted(left.items()):
        sys.stdout.write(f"{kind:16} {number:9,} entries\n")
    return int(not left.keys() <= {*LASTING, *OWED, *JOURNALS})


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    sys.exit(asyncio.run(main(*(given or (1_000_000, 10_000)))))
