"""Read the machine's clocks, and wait: the one place that does either.

Nothing durable is computed from here; that is the store's own clock (S1).
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
        """Say what time people have; it may jump. For ids, which only have to sort roughly by time."""
        ...

    def elapsed(self) -> Micros:
        """Count from some fixed moment on, never back. For durations."""
        ...

    async def wait(self, duration: Micros) -> None:
        """Let this much time pass; nothing or less only gives others their turn."""
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
