"""Whether taking claims back rests: after an outage of the store, or after its clock has jumped (S38)."""

from __future__ import annotations

from logging import getLogger
from typing import Final

from fairlane.model.instants import Instant, Micros
from fairlane.model.lifecycle.outage import REST_MARGIN, is_jump, rests_until
from fairlane.runtime.clock import Clock
from fairlane.store.contract.registry import StoreStatus

_log: Final = getLogger("fairlane.duties")


class OutageRest:
    """Compares the store's clock with the local one from pass to pass, to notice a jump.

    `jumped_at` is the instant of the store at which its last jump was noticed; 0 if there was none.
    """

    def __init__(self, clock: Clock, renew_every: Micros) -> None:
        self.jumped_at: Instant = 0
        self._clock = clock
        self._renew_every = renew_every
        self._last_look: tuple[Instant, Micros] | None = None
        self._rests_until: Micros = 0

    def left(self, status: StoreStatus) -> Micros:
        """Return how long nothing may be taken back yet; 0 or less if something may."""
        local = self._clock.elapsed()
        last, self._last_look = self._last_look, (status.now, local)
        if last is not None and is_jump(status.now - last[0], local - last[1]):
            self.jumped_at = status.now
            self._rests_until = local + self._renew_every + REST_MARGIN
            text = "the store's clock has jumped; taking claims back rests"
            _log.warning(text, extra={"event": "reclaim_rests", "cause": "jump"})
        until = rests_until(status.now, status.beat_at, status.resumed_at, self._renew_every)
        return max(self._rests_until - local, 0 if until is None else until - status.now)
