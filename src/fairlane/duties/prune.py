"""Delete finished jobs, results and keys whose retention is over (S52)."""

from __future__ import annotations

from typing import Final

from fairlane.model.instants import MINUTE, SECOND, Micros
from fairlane.model.policy.retention import Retention
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.upkeep import PruneRequest

EVERY: Final[Micros] = MINUTE
BETWEEN: Final[Micros] = SECOND // 10
"""The pause between passes of a long prune: the store has other work to do."""


async def prune(store: Store, retention: Retention) -> Micros:
    """Take one pass; return the pause before the next, short if there was more."""
    reply = await store.upkeep.prune(PruneRequest(scope=Scope.all(), retention=retention))
    return BETWEEN if reply.is_partial else EVERY
