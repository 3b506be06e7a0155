"""Take back the jobs of claims whose lease ran out, but not while it was the store that was away (S38)."""

from __future__ import annotations

from logging import getLogger
from typing import Final

from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.outage import REST_MARGIN, is_jump, rests_until
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.store.contract import Store
from fairlane.store.contract.claims import Lost, ReclaimRequest
from fairlane.store.contract.registry import Pulse
from fairlane.store.contract.request import Request

EVERY: Final[Micros] = SECOND
QUIET: Final[Micros] = 2 * SECOND
"""While nothing is lost: a lease of 12 s and this still bring a dead worker's jobs back within 18 s. While
nobody holds anything, nothing can lapse before a lease is over, and the next look is as much earlier."""

_log: Final = getLogger("fairlane.duties")


class Reclaim:
    """Remembers how the store's clock went beside the own one, to see it jump."""

    def __init__(self, clock: Clock, settings: WorkerSettings) -> None:
        self._clock = clock
        self._renew_every = settings.renew_every
        self._max_crashes = settings.max_crashes
        self._idle = max(QUIET, settings.lease - QUIET)
        self._looked: tuple[Instant, Micros] | None = None
        self._rests_until: Micros = 0

    async def __call__(self, store: Store) -> Micros:
        """Take one pass, unless reclaiming rests; come back at once if there was more."""
        pulse = await store.registry.pulse(Request(scope=Scope.all()))
        rest = self._rest(pulse)
        if rest > 0:
            return min(rest, EVERY)
        # The store may stand still between the two: by the pulse nobody knows who could renew since.
        request = ReclaimRequest(scope=Scope.all(), max_crashes=self._max_crashes, lapsed_by=pulse.now)
        reply = await store.claims.reclaim(request)
        for lost in reply.lost:
            _tell(lost)
        if reply.is_partial:
            return 0
        if reply.lost:
            return EVERY
        return self._idle if reply.is_idle else QUIET

    def _rest(self, pulse: Pulse) -> Micros:
        """Say how long reclaiming still rests: while and after all workers were silent, and after a jump."""
        own = self._clock.elapsed()
        looked, self._looked = self._looked, (pulse.now, own)
        if looked is not None and is_jump(pulse.now - looked[0], own - looked[1]):
            self._rests_until = own + self._renew_every + REST_MARGIN
            text = "the store's clock has jumped; reclaiming rests"
            _log.warning(text, extra={"event": "reclaim_rests", "cause": "jump"})
        until = rests_until(pulse.now, pulse.beat_at, pulse.resumed_at, self._renew_every)
        return max(self._rests_until - own, 0 if until is None else until - pulse.now)


def _tell(lost: Lost) -> None:
    text = "job %s was lost by %s and is now %s"
    about = {"tenant": lost.tenant, "job": str(lost.id), "queue": lost.queue, "worker": lost.worker}
    extra = {"event": "job_lost", "state": lost.state.value, **about}
    _log.warning(text, lost.id, lost.worker, lost.state.value, extra=extra)
