"""Note in dead letters how the jobs in their place have ended (S75)."""

from __future__ import annotations

from typing import Final

from fairlane.duties.pass_result import Pause, counted
from fairlane.model.instants import SECOND, Micros
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.dead import FollowRequest

EVERY: Final[Micros] = 10 * SECOND
QUIET: Final[Micros] = 20 * SECOND
"""The pause after a pass that found nothing."""


async def follow(store: Store) -> Micros:
    """Take one pass; return the pause before the next, zero if there was more."""
    reply = await store.dead.follow(FollowRequest(scope=Scope.all()))
    did = counted(len(reply.followed), "noted")
    if reply.is_partial:
        return Pause(0, did)
    return Pause(EVERY if reply.followed else QUIET, did)
