"""Forget workers that have been silent for long. Their claims are reclaimed by their leases, not here."""

from __future__ import annotations

from logging import getLogger
from typing import Final

from fairlane.model.instants import HOUR, MINUTE, Micros
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.registry import CleanRequest

EVERY: Final[Micros] = MINUTE
SILENT_FOR: Final[Micros] = HOUR
"""Long enough to be seen by whoever looks for a worker that died."""

_log: Final = getLogger("fairlane.duties")


async def clean(store: Store) -> Micros:
    """Take one pass."""
    for worker in await store.registry.clean(CleanRequest(scope=Scope.all(), silent_for=SILENT_FOR)):
        text = "%s was not heard of for an hour and is forgotten"
        _log.info(text, worker, extra={"event": "worker_forgotten", "worker": worker})
    return EVERY
