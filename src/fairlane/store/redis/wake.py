"""Wait for hints: each queue and each worker has a stream of one entry, on which waiting workers block.

A worker waits from the last entry it has seen: a hint just before the wait is not missed.
"""

from __future__ import annotations

from typing import Final

from fairlane.model.instants import SECOND, Micros
from fairlane.store.redis.client import RedisClient

_MILLISECOND: Final[Micros] = 1_000
_MAX_WORKERS: Final = 1_000
"""Beyond this, what workers have seen is forgotten: they wake once too often."""


class Wake:
    """The last hints that the workers of this process have seen."""

    def __init__(self, client: RedisClient) -> None:
        """Start with none seen."""
        self._client = client
        self._seen: dict[tuple[str, str], bytes] = {}

    async def wait(self, worker: str, queues: tuple[str, ...], at_most: Micros) -> bool:
        """Block until a hint arrives or the time is over; return whether one arrived."""
        keys = self._client.keys
        streams = [
            keys("worker_hints", worker),
            *(keys("hints", queue) for queue in dict.fromkeys(queues)),
        ]
        seen = [self._seen.get((worker, stream), b"0-0") for stream in streams]
        milliseconds = max(1, -(-at_most // _MILLISECOND))
        found = await self._client.block(
            at_most / SECOND, "XREAD", "BLOCK", milliseconds, "STREAMS", *streams, *seen
        )
        if not found:
            return False
        if len(self._seen) > _MAX_WORKERS:
            self._seen.clear()
        for stream, entries in found.items():
            self._seen[worker, stream.decode()] = entries[-1][0]
        return True
