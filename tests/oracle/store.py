"""The oracle: six facets over one state."""

from __future__ import annotations

from tests.oracle.claims import OracleClaims
from tests.oracle.clock import DrivenClock
from tests.oracle.core import Core
from tests.oracle.dead import OracleDead
from tests.oracle.jobs import OracleJobs
from tests.oracle.policies import OraclePolicies
from tests.oracle.registry import OracleRegistry
from tests.oracle.upkeep import OracleUpkeep


class OracleStore:
    """A store that gives the right answer."""

    def __init__(self, clock: DrivenClock) -> None:
        """Start empty."""
        core = Core(clock)
        self.jobs = OracleJobs(core)
        self.claims = OracleClaims(core)
        self.policies = OraclePolicies(core)
        self.registry = OracleRegistry(core)
        self.dead = OracleDead(core)
        self.upkeep = OracleUpkeep(core)
