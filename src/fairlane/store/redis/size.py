"""How much memory the server uses, and how much it may (S126). It counts all that is on the server."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from fairlane.model.errors import StoreError
from fairlane.model.policy.pressure import StoreSize
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.server import read_info


async def read_size(client: RedisClient) -> StoreSize | None:
    """Return both; None if this user may not read them."""
    with suppress(StoreError):
        return size_of(await read_info(client.ask, "memory"))
    return None


def size_of(info: Mapping[str, str]) -> StoreSize | None:
    """Return both, from what a server says of itself.

    >>> size_of({"used_memory": "5", "maxmemory": "0"}), size_of({"used_memory": "5", "maxmemory": "9"})
    (StoreSize(used=5, limit=None), StoreSize(used=5, limit=9))
    """
    if "used_memory" not in info:
        return None
    return StoreSize(int(info["used_memory"]), int(info.get("maxmemory", "0")) or None)
