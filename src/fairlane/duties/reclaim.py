"""Take back jobs whose lease has expired, but not because the store itself was down (S38)."""

from __future__ import annotations

from collections.abc import Iterable
from logging import getLogger
from typing import Final

from fairlane.app.worker_settings import WorkerSettings
from fairlane.duties.pass_result import Pause, counted
from fairlane.duties.rest import OutageRest
from fairlane.model.instants import SECOND, Micros
from fairlane.model.journal.facts import worker_lost
from fairlane.model.policy.retention import Retention
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.store.contract import Store
from fairlane.store.contract.claims import LostClaim, ReclaimRequest
from fairlane.store.contract.journal import AppendRequest
from fairlane.store.contract.request import Request

EVERY: Final[Micros] = SECOND
QUIET: Final[Micros] = 2 * SECOND
"""The pause while nothing is lost: with a lease of 12 s, a dead worker's jobs are still back within 18 s.
While no claim is held at all, none can expire before a whole lease is over: the next pass waits that long."""

_log: Final = getLogger("fairlane.duties")


class Reclaim:
    """Reclaims expired claims, unless that rests."""

    def __init__(self, clock: Clock, settings: WorkerSettings, retention: Retention) -> None:
        self._retention = retention
        self._idle = max(QUIET, settings.lease - QUIET)
        self._rest = OutageRest(clock, settings.renew_every)

    async def __call__(self, store: Store) -> Micros:
        """Take one pass unless reclaiming rests; return the pause before the next, zero if there was more."""
        status = await store.registry.status(Request(scope=Scope.all()))
        rest = self._rest.left(status)
        if rest > 0:
            return Pause(min(rest, EVERY), "rests after an outage")
        # The store may freeze between the two calls: who could have renewed since `status.now` is not known.
        request = ReclaimRequest(
            scope=Scope.all(), expired_by=status.now, attempts_kept=self._retention.attempts
        )
        reply = await store.claims.reclaim(request)
        for lost in reply.lost:
            _log_lost(lost)
        await _tell(store, reply.lost)
        if reply.lost:
            return Pause(0 if reply.is_partial else EVERY, counted(len(reply.lost), "taken back"))
        if reply.is_partial:
            return 0
        return self._idle if reply.is_idle else QUIET


async def _tell(store: Store, lost: Iterable[LostClaim]) -> None:
    """Append an event for each worker that has lost claims (S76)."""
    queues: dict[str, list[str]] = {}
    for one in lost:
        queues.setdefault(one.worker, []).append(one.queue)
    entries = tuple(worker_lost(worker, len(of), of) for worker, of in queues.items())
    if entries:
        await store.journal.append(AppendRequest(scope=Scope.all(), journal="events", entries=entries))


def _log_lost(lost: LostClaim) -> None:
    text = "job %s was lost by %s and is now %s"
    about = {"tenant": lost.tenant, "job": str(lost.id), "queue": lost.queue, "worker": lost.worker}
    extra = {"event": "job_lost", "state": lost.state.value, **about}
    _log.warning(text, lost.id, lost.worker, lost.state.value, extra=extra)
