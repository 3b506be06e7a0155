"""The oracle: thirteen facets over one state."""

from __future__ import annotations

from tests.oracle.access import OracleAccess
from tests.oracle.breakers import OracleBreakers
from tests.oracle.budgets import OracleBudgets
from tests.oracle.claims import OracleClaims
from tests.oracle.clock import DrivenClock
from tests.oracle.core import Core
from tests.oracle.dead import OracleDead
from tests.oracle.history import OracleHistory
from tests.oracle.jobs import OracleJobs
from tests.oracle.journal import OracleJournal
from tests.oracle.mailbox import OracleMailbox
from tests.oracle.policies import OraclePolicies
from tests.oracle.registry import OracleRegistry
from tests.oracle.schedules import OracleSchedules
from tests.oracle.upkeep import OracleUpkeep


class OracleStore:
    """A store that gives the right answer."""

    def __init__(self, clock: DrivenClock) -> None:
        """Start empty."""
        core = Core(clock)
        self.jobs = OracleJobs(core)
        self.claims = OracleClaims(core)
        self.policies = OraclePolicies(core)
        self.budgets = OracleBudgets(core)
        self.registry = OracleRegistry(core)
        self.mailbox = OracleMailbox(core)
        self.dead = OracleDead(core)
        self.journal = OracleJournal(core)
        self.access = OracleAccess(core)
        self.breakers = OracleBreakers(core)
        self.schedules = OracleSchedules(core)
        self.history = OracleHistory(core)
        self.upkeep = OracleUpkeep(core)
