"""A clock that moves only when a test advances it."""

from __future__ import annotations

from fairlane.model.instants import SECOND, Instant

START: Instant = 1_800_000_000 * SECOND


class DrivenClock:
    """Stands still until `advance`; the only clock of a store under test."""

    def __init__(self, start: Instant = START) -> None:
        """Start at a fixed instant."""
        self._now = start

    def now(self) -> Instant:
        """Return the current instant."""
        return self._now

    def advance(self, seconds: float) -> Instant:
        """Move forward, or back, and return the new instant."""
        self._now += round(seconds * SECOND)
        return self._now
