"""Make due jobs ready, so that counts are right and workers are woken. Claims do not depend on it."""

from __future__ import annotations

from typing import Final

from fairlane.duties.pass_result import Pause, counted
from fairlane.model.instants import SECOND, Micros
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.claims import PassRequest

EVERY: Final[Micros] = 15 * SECOND
"""The longest pause; idle workers know by themselves when the next job is due."""

SOON: Final[Micros] = SECOND

AT_ONCE: Final = 200
"""How many jobs a pass makes ready: claims wait for it, on SQLite all, on PostgreSQL those of the queue."""


async def promote(store: Store) -> Micros:
    """Take one pass; return the pause before the next: zero if there was more, short if something was due."""
    reply = await store.claims.promote(PassRequest(scope=Scope.all(), limit=AT_ONCE))
    did = counted(reply.promoted, "made ready")
    if reply.is_partial:
        return Pause(0, did)
    return Pause(SOON if reply.promoted or reply.next_due_at is not None else EVERY, did)
