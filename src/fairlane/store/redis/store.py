"""The Redis and Valkey store, whole: six facets over one server."""

from __future__ import annotations

from collections.abc import Callable

from fairlane.model.instants import Instant
from fairlane.store.opening import StoreClock
from fairlane.store.redis.claims import RedisClaims
from fairlane.store.redis.connect import Wire
from fairlane.store.redis.dead import RedisDead
from fairlane.store.redis.jobs import RedisJobs
from fairlane.store.redis.location import Location
from fairlane.store.redis.policies import RedisPolicies
from fairlane.store.redis.registry import RedisRegistry
from fairlane.store.redis.upkeep import RedisUpkeep


class RedisStore:
    """One installation under one hash tag."""

    def __init__(self, url: str, clock: Callable[[], Instant] | None = None) -> None:
        """Connect nothing yet: that is for the first verb. Tests give a clock, nobody else does."""
        wire = Wire(Location(url), clock)
        self.jobs = RedisJobs(wire)
        self.claims = RedisClaims(wire)
        self.policies = RedisPolicies(wire)
        self.registry = RedisRegistry(wire)
        self.dead = RedisDead(wire)
        self.upkeep = RedisUpkeep(wire, wire.close)


def open_url(url: str, clock: StoreClock | None = None) -> RedisStore:
    """Give the store of a URL; nothing is connected yet."""
    return RedisStore(url, None if clock is None else clock.now)
