"""The tenants that the relay holds back because the store refused a row of theirs, and for how long."""

from __future__ import annotations

from typing import Final, NamedTuple

from fairlane.model.instants import Micros
from fairlane.model.retry.backoff import Backoff

MAX_HELD_TENANTS: Final = 1_000
"""Tenants that one statement can exclude. If more are held, all wait until one of them may try again."""

_BACKOFF: Final = Backoff.exponential(1, cap=60, jitter=0.2)


class _Hold(NamedTuple):
    refusals: int
    until: Micros


class HeldTenants:
    """The tenants that are held back. A refused row also holds the rows behind it, to keep the order."""

    def __init__(self) -> None:
        self._holds: dict[str, _Hold] = {}

    def hold(self, tenant: str, now: Micros, draw: float) -> Micros:
        """Hold a tenant back, longer each time; return for how long."""
        refusals = self._holds[tenant].refusals + 1 if tenant in self._holds else 1
        delay = _BACKOFF.micros(refusals, draw)
        self._holds[tenant] = _Hold(refusals, now + delay)
        return delay

    def free(self, tenant: str) -> None:
        """Release a tenant: a row of it was stored."""
        self._holds.pop(tenant, None)

    def held(self, now: Micros) -> list[str]:
        """Return the tenants that must still wait."""
        return sorted(tenant for tenant, hold in self._holds.items() if hold.until > now)

    def rest(self, now: Micros) -> Micros:
        """Return how long to pause because too many tenants are held to exclude them all; usually 0."""
        waits = sorted(hold.until - now for hold in self._holds.values() if hold.until > now)
        return waits[-MAX_HELD_TENANTS - 1] if len(waits) > MAX_HELD_TENANTS else 0
