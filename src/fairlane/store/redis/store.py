"""The Redis and Valkey store as a whole: six facets over one server."""

from __future__ import annotations

from collections.abc import Callable

from fairlane.model.instants import Instant
from fairlane.store.opening import StoreClock
from fairlane.store.redis.claims.facet import RedisClaims
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.dead import RedisDead
from fairlane.store.redis.jobs.facet import RedisJobs
from fairlane.store.redis.location import Location
from fairlane.store.redis.policies.facet import RedisPolicies
from fairlane.store.redis.registry import RedisRegistry
from fairlane.store.redis.upkeep.facet import RedisUpkeep


class RedisStore:
    """One installation under one hash tag."""

    def __init__(self, url: str, clock: Callable[[], Instant] | None = None) -> None:
        """Connect nothing yet: the first call does. Only tests pass a clock."""
        client = RedisClient(Location(url), clock)
        self.jobs = RedisJobs(client)
        self.claims = RedisClaims(client)
        self.policies = RedisPolicies(client)
        self.registry = RedisRegistry(client)
        self.dead = RedisDead(client)
        self.upkeep = RedisUpkeep(client, client.close)


def open_url(url: str, clock: StoreClock | None = None) -> RedisStore:
    """Return the store of a URL; nothing is connected yet."""
    return RedisStore(url, None if clock is None else clock.now)
