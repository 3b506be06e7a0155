"""Remove finished jobs, results and keys that were kept long enough (S52)."""

from __future__ import annotations

from typing import Final

from fairlane.model.instants import MINUTE, SECOND, Micros
from fairlane.model.retention import Retention
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.upkeep import PruneRequest

EVERY: Final[Micros] = MINUTE
BETWEEN: Final[Micros] = SECOND // 10
"""A breath between the passes of a long prune: a store has other things to do."""


async def prune(store: Store, retention: Retention) -> Micros:
    """Take one pass; come back soon if there was more."""
    reply = await store.upkeep.prune(PruneRequest(scope=Scope.all(), retention=retention))
    return BETWEEN if reply.is_partial else EVERY
