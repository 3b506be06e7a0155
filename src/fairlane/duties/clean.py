"""Remove silent workers, old questions to them, what has expired of access, and old slots of schedules.

The jobs of a silent worker come back by their leases, not here.
"""

from __future__ import annotations

from logging import getLogger
from typing import Final

from fairlane.duties.pass_result import Pause, counted
from fairlane.model.instants import HOUR, MINUTE, Micros
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.registry import ForgetWorkersRequest
from fairlane.store.contract.request import Request

EVERY: Final[Micros] = MINUTE
SILENT_FOR: Final[Micros] = HOUR
"""Long enough for somebody who looks for a dead worker to see it."""

_log: Final = getLogger("fairlane.duties")


async def clean(store: Store) -> Micros:
    """Take one pass; return the pause before the next."""
    silent = await store.registry.clean(ForgetWorkersRequest(scope=Scope.all(), silent_for=SILENT_FOR))
    for worker in silent:
        text = "%s sent no heartbeat for an hour and was removed from the registry"
        _log.info(text, worker, extra={"event": "worker_forgotten", "worker": worker})
    await store.mailbox.clean(Request(scope=Scope.all()))
    await store.access.clean(Request(scope=Scope.all()))
    await store.schedules.clean(Request(scope=Scope.all()))
    return Pause(EVERY, counted(len(silent), "silent workers removed"))
