"""Remove workers without a heartbeat from the registry. Their jobs come back by their leases, not here."""

from __future__ import annotations

from logging import getLogger
from typing import Final

from fairlane.model.instants import HOUR, MINUTE, Micros
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.registry import ForgetWorkersRequest

EVERY: Final[Micros] = MINUTE
SILENT_FOR: Final[Micros] = HOUR
"""Long enough for somebody who looks for a dead worker to see it."""

_log: Final = getLogger("fairlane.duties")


async def clean(store: Store) -> Micros:
    """Take one pass; return the pause before the next."""
    for worker in await store.registry.clean(ForgetWorkersRequest(scope=Scope.all(), silent_for=SILENT_FOR)):
        text = "%s sent no heartbeat for an hour and was removed from the registry"
        _log.info(text, worker, extra={"event": "worker_forgotten", "worker": worker})
    return EVERY
