"""A clock that moves only when it is told to."""

from __future__ import annotations

from fairlane.model.instants import SECOND, Instant

START: Instant = 1_800_000_000 * SECOND


class DrivenClock:
    """Stands still until `advance`; the one source of "now" for a store under test."""

    def __init__(self, start: Instant = START) -> None:
        """Begin at a fixed instant."""
        self._now = start

    def now(self) -> Instant:
        """Say what time it is."""
        return self._now

    def advance(self, seconds: float) -> Instant:
        """Move on (or back) and say what time it is then."""
        self._now += round(seconds * SECOND)
        return self._now
