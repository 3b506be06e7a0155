"""Take back jobs whose lease has expired, but not because the store itself was down (S38)."""

from __future__ import annotations

from logging import getLogger
from typing import Final

from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.lifecycle.outage import REST_MARGIN, is_jump, rests_until
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.store.contract import Store
from fairlane.store.contract.claims import LostClaim, ReclaimRequest
from fairlane.store.contract.registry import StoreStatus
from fairlane.store.contract.request import Request

EVERY: Final[Micros] = SECOND
QUIET: Final[Micros] = 2 * SECOND
"""The pause while nothing is lost: with a lease of 12 s, a dead worker's jobs are still back within 18 s.
While no claim is held at all, none can expire before a whole lease is over: the next pass waits that long."""

_log: Final = getLogger("fairlane.duties")


class Reclaim:
    """Reclaims expired claims. Compares the store's clock with the local one to notice a jump."""

    def __init__(self, clock: Clock, settings: WorkerSettings) -> None:
        self._clock = clock
        self._renew_every = settings.renew_every
        self._idle = max(QUIET, settings.lease - QUIET)
        self._last_look: tuple[Instant, Micros] | None = None
        self._rests_until: Micros = 0

    async def __call__(self, store: Store) -> Micros:
        """Take one pass unless reclaiming rests; return the pause before the next, zero if there was more."""
        status = await store.registry.status(Request(scope=Scope.all()))
        rest = self._rest(status)
        if rest > 0:
            return min(rest, EVERY)
        # The store may freeze between the two calls: who could have renewed since `status.now` is not known.
        request = ReclaimRequest(scope=Scope.all(), expired_by=status.now)
        reply = await store.claims.reclaim(request)
        for lost in reply.lost:
            _log_lost(lost)
        if reply.is_partial:
            return 0
        if reply.lost:
            return EVERY
        return self._idle if reply.is_idle else QUIET

    def _rest(self, status: StoreStatus) -> Micros:
        """Return how long reclaiming still rests: after an outage, or after the store's clock has jumped."""
        local = self._clock.elapsed()
        last, self._last_look = self._last_look, (status.now, local)
        if last is not None and is_jump(status.now - last[0], local - last[1]):
            self._rests_until = local + self._renew_every + REST_MARGIN
            text = "the store's clock has jumped; reclaiming rests"
            _log.warning(text, extra={"event": "reclaim_rests", "cause": "jump"})
        until = rests_until(status.now, status.beat_at, status.resumed_at, self._renew_every)
        return max(self._rests_until - local, 0 if until is None else until - status.now)


def _log_lost(lost: LostClaim) -> None:
    text = "job %s was lost by %s and is now %s"
    about = {"tenant": lost.tenant, "job": str(lost.id), "queue": lost.queue, "worker": lost.worker}
    extra = {"event": "job_lost", "state": lost.state.value, **about}
    _log.warning(text, lost.id, lost.worker, lost.state.value, extra=extra)
