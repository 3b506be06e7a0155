"""The Redis and Valkey store as a whole: thirteen facets over one server."""

from __future__ import annotations

from collections.abc import Callable

from fairlane.model.instants import Instant
from fairlane.store.opening import StoreClock
from fairlane.store.redis.access import RedisAccess
from fairlane.store.redis.breakers import RedisBreakers
from fairlane.store.redis.budgets import RedisBudgets
from fairlane.store.redis.claims.facet import RedisClaims
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.dead.facet import RedisDead
from fairlane.store.redis.history import RedisHistory
from fairlane.store.redis.jobs.facet import RedisJobs
from fairlane.store.redis.journal import RedisJournal
from fairlane.store.redis.location import Location
from fairlane.store.redis.mailbox import RedisMailbox
from fairlane.store.redis.policies.facet import RedisPolicies
from fairlane.store.redis.registry import RedisRegistry
from fairlane.store.redis.schedules import RedisSchedules
from fairlane.store.redis.upkeep.facet import RedisUpkeep


class RedisStore:
    """One installation under one hash tag."""

    def __init__(self, url: str, clock: Callable[[], Instant] | None = None) -> None:
        """Connect nothing yet: the first call does. Only tests pass a clock."""
        client = RedisClient(Location(url), clock)
        self.jobs = RedisJobs(client)
        self.claims = RedisClaims(client)
        self.policies = RedisPolicies(client)
        self.budgets = RedisBudgets(client)
        self.registry = RedisRegistry(client)
        self.mailbox = RedisMailbox(client)
        self.dead = RedisDead(client)
        self.journal = RedisJournal(client)
        self.access = RedisAccess(client)
        self.breakers = RedisBreakers(client)
        self.schedules = RedisSchedules(client)
        self.history = RedisHistory(client)
        self.upkeep = RedisUpkeep(client, client.close)


def open_url(url: str, clock: StoreClock | None = None) -> RedisStore:
    """Return the store of a URL; nothing is connected yet."""
    return RedisStore(url, None if clock is None else clock.now)
