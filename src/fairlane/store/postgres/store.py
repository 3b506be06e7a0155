"""The PostgreSQL store, whole: six facets over one schema of one database."""

from __future__ import annotations

from collections.abc import Callable

from fairlane.model.instants import Instant
from fairlane.store.contract.upkeep import MigrateReply
from fairlane.store.opening import StoreClock
from fairlane.store.postgres.claims import PostgresClaims
from fairlane.store.postgres.connect import Server
from fairlane.store.postgres.dead import PostgresDead
from fairlane.store.postgres.jobs import PostgresJobs
from fairlane.store.postgres.location import Location
from fairlane.store.postgres.migrating import migrate, plan
from fairlane.store.postgres.policies import PostgresPolicies
from fairlane.store.postgres.registry import PostgresRegistry
from fairlane.store.postgres.upkeep import PostgresUpkeep


class PostgresStore:
    """One installation in one schema."""

    def __init__(self, url: str, clock: Callable[[], Instant] | None = None) -> None:
        """Connect to nothing yet: the first verb does. Tests give a clock, nobody else does."""
        self._server = server = Server(Location(url), clock)
        self.jobs = PostgresJobs(server)
        self.claims = PostgresClaims(server)
        self.policies = PostgresPolicies(server)
        self.registry = PostgresRegistry(server, server.wake)
        self.dead = PostgresDead(server)
        self.upkeep = PostgresUpkeep(server, self._migrate, self._plan, server.close)

    async def _migrate(self) -> MigrateReply:
        async with self._server.apart() as connection:
            return await migrate(connection, self._server.location)

    async def _plan(self) -> MigrateReply:
        async with self._server.apart() as connection:
            return await plan(connection, self._server.location)


def open_url(url: str, clock: StoreClock | None = None) -> PostgresStore:
    """Give the store of a URL; nothing is connected yet."""
    return PostgresStore(url, None if clock is None else clock.now)
