"""Wait for hints: each queue and each worker has a stream of one entry, on which waiting workers block.

A hint that came just before the wait counts, because a worker waits from the last entry it has seen.
"""

from __future__ import annotations

from typing import Final

from fairlane.model.instants import SECOND, Micros
from fairlane.store.redis.connect import Wire

_MILLI: Final[Micros] = 1_000
_WORKERS_KEPT: Final = 1_000
"""With more, what they have seen is forgotten: a hint too many, once."""


class Wake:
    """What the workers of this process have seen."""

    def __init__(self, wire: Wire) -> None:
        """Have seen nothing."""
        self._wire = wire
        self._seen: dict[tuple[str, str], bytes] = {}

    async def wait(self, worker: str, queues: tuple[str, ...], at_most: Micros) -> bool:
        """Block until a hint arrives or the time is over."""
        keys = self._wire.keys
        streams = [keys("worker_hints", worker), *(keys("hints", queue) for queue in dict.fromkeys(queues))]
        places = [self._seen.get((worker, stream), b"0-0") for stream in streams]
        milliseconds = max(1, -(-at_most // _MILLI))
        found = await self._wire.block(
            at_most / SECOND, "XREAD", "BLOCK", milliseconds, "STREAMS", *streams, *places
        )
        if not found:
            return False
        if len(self._seen) > _WORKERS_KEPT:
            self._seen.clear()
        for stream, entries in found.items():
            self._seen[worker, stream.decode()] = entries[-1][0]
        return True
