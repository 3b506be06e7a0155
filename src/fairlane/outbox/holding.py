"""Which tenants the relay holds back because the store refused a row of theirs, and for how long."""

from __future__ import annotations

from typing import Final, NamedTuple

from fairlane.model.instants import Micros
from fairlane.model.retry import Backoff

MOST_HELD: Final = 1_000
"""How many tenants a statement can leave out; when more are held, all rest until one may try again."""

_BACKOFF: Final = Backoff.exponential(1, cap=60, jitter=0.2)


class _Hold(NamedTuple):
    refusals: int
    until: Micros


class Holds:
    """The tenants that are held back. A row that waits keeps the rows behind it waiting, in order."""

    def __init__(self) -> None:
        self._holds: dict[str, _Hold] = {}

    def hold(self, tenant: str, now: Micros, draw: float) -> Micros:
        """Hold a tenant back, each time for longer; give for how long."""
        refusals = self._holds[tenant].refusals + 1 if tenant in self._holds else 1
        delay = _BACKOFF.micros(refusals, draw)
        self._holds[tenant] = _Hold(refusals, now + delay)
        return delay

    def free(self, tenant: str) -> None:
        """Forget that a tenant was refused: a row of it was stored."""
        self._holds.pop(tenant, None)

    def held(self, now: Micros) -> list[str]:
        """Name the tenants that must still wait."""
        return sorted(tenant for tenant, hold in self._holds.items() if hold.until > now)

    def rest(self, now: Micros) -> Micros:
        """Say for how long everybody must rest: nothing, unless too many are held to leave them all out."""
        waits = sorted(hold.until - now for hold in self._holds.values() if hold.until > now)
        return waits[-MOST_HELD - 1] if len(waits) > MOST_HELD else 0
