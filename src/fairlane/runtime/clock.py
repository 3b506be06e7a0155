"""Read the machine's clocks, and sleep: the only module that does either.

Nothing durable is computed from these clocks: the store has its own (S1).
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from fairlane.model.instants import SECOND, Instant, Micros

_NANOS = 1_000
"""Nanoseconds in a microsecond."""


class Clock(Protocol):
    """The time on this machine, in whole microseconds."""

    def wall(self) -> Instant:
        """Return the wall-clock time, which may jump. For ids, which only have to sort roughly by time."""
        ...

    def elapsed(self) -> Micros:
        """Return a count from some fixed moment that never goes back. For durations."""
        ...

    async def wait(self, duration: Micros) -> None:
        """Sleep for this long; zero or less only yields to other tasks."""
        ...


class MachineClock:
    """The real clocks.

    >>> clock = MachineClock()
    >>> clock.elapsed() <= clock.elapsed()
    True
    """

    def wall(self) -> Instant:
        """Read the wall clock."""
        return time.time_ns() // _NANOS

    def elapsed(self) -> Micros:
        """Read the monotonic clock."""
        return time.monotonic_ns() // _NANOS

    async def wait(self, duration: Micros) -> None:
        """Sleep in the event loop."""
        await asyncio.sleep(max(0, duration) / SECOND)


class ClockOffset:
    """How far a store's clock is ahead of the local monotonic one, as last measured.

    Good enough to know when to look again; nothing durable is computed from it.

    >>> offset = ClockOffset(store_now=1_000, local_now=10)
    >>> offset.to_local(1_500)
    510
    """

    def __init__(self, store_now: Instant, local_now: Micros) -> None:
        self._ahead = store_now - local_now

    def update(self, store_now: Instant, local_now: Micros) -> None:
        """Take a new measurement."""
        self._ahead = store_now - local_now

    def to_local(self, instant: Instant) -> Micros:
        """Return when this instant of the store is on the local clock."""
        return instant - self._ahead

    def to_store(self, local: Micros) -> Instant:
        """Return what the store's clock shows at this moment of the local one."""
        return local + self._ahead
