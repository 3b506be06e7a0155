"""The PostgreSQL store, whole: thirteen facets over one schema of one database."""

from __future__ import annotations

from collections.abc import Callable

from fairlane.model.instants import Instant
from fairlane.store.opening import StoreClock
from fairlane.store.postgres.access import PostgresAccess
from fairlane.store.postgres.breakers import PostgresBreakers
from fairlane.store.postgres.budgets import PostgresBudgets
from fairlane.store.postgres.claims.facet import PostgresClaims
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.dead.facet import PostgresDead
from fairlane.store.postgres.history import PostgresHistory
from fairlane.store.postgres.jobs.facet import PostgresJobs
from fairlane.store.postgres.journal import PostgresJournal
from fairlane.store.postgres.location import Location
from fairlane.store.postgres.mailbox import PostgresMailbox
from fairlane.store.postgres.policies.facet import PostgresPolicies
from fairlane.store.postgres.registry import PostgresRegistry
from fairlane.store.postgres.schedules import PostgresSchedules
from fairlane.store.postgres.upkeep.facet import PostgresUpkeep


class PostgresStore:
    """One installation in one schema."""

    def __init__(self, url: str, clock: Callable[[], Instant] | None = None) -> None:
        """Connect to nothing yet: the first verb does. Only tests pass a clock."""
        self._server = server = Server(Location(url), clock)
        self.jobs = PostgresJobs(server)
        self.claims = PostgresClaims(server)
        self.policies = PostgresPolicies(server)
        self.budgets = PostgresBudgets(server)
        self.registry = PostgresRegistry(server, server.wake)
        self.mailbox = PostgresMailbox(server)
        self.dead = PostgresDead(server)
        self.journal = PostgresJournal(server)
        self.access = PostgresAccess(server)
        self.breakers = PostgresBreakers(server)
        self.schedules = PostgresSchedules(server)
        self.history = PostgresHistory(server)
        self.upkeep = PostgresUpkeep(server)


def open_url(url: str, clock: StoreClock | None = None) -> PostgresStore:
    """Return the store of a URL; nothing is connected yet."""
    return PostgresStore(url, None if clock is None else clock.now)
