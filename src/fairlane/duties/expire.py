"""Cancel waiting jobs that have expired (S21)."""

from __future__ import annotations

from typing import Final

from fairlane.duties.pass_result import Pause, counted
from fairlane.model.instants import SECOND, Micros
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.claims import PassRequest

EVERY: Final[Micros] = 15 * SECOND
"""An expired job is never claimed meanwhile; the pass only tells its owner."""


async def expire(store: Store) -> Micros:
    """Take one pass; return the pause before the next, zero if there was more."""
    reply = await store.claims.expire(PassRequest(scope=Scope.all()))
    return Pause(0 if reply.is_partial else EVERY, counted(reply.expired, "cancelled"))
