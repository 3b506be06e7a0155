"""Translate the store's instants into this process's monotonic clock, roughly. Decides nothing durable."""

from __future__ import annotations

from fairlane.model.instants import Instant, Micros


class StoreTime:
    """What the store's clock shows compared with the own one, as last heard.

    >>> times = StoreTime(store_now=1_000, own_now=10)
    >>> times.own(1_500)
    510
    """

    def __init__(self, store_now: Instant, own_now: Micros) -> None:
        self._ahead = store_now - own_now

    def learn(self, store_now: Instant, own_now: Micros) -> None:
        """Compare the clocks once more."""
        self._ahead = store_now - own_now

    def own(self, instant: Instant) -> Micros:
        """Say when that instant is on the own clock."""
        return instant - self._ahead

    def store(self, own: Micros) -> Instant:
        """Say what the store's clock shows at a moment of the own one."""
        return own + self._ahead
