"""How much of the processor this process uses. Knows no clock of jobs: only its own, which cannot be set."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_SHORTEST: Final = 0.05
"""Seconds: over less than that the answer would be noise."""


class CpuMeter:
    """Tells how many processors were busy with this process, on average since it was asked last.

    >>> clock, used = iter([0.0, 10.0]), iter([1.0, 6.0])
    >>> CpuMeter(lambda: next(clock), lambda: next(used)).read()
    0.5
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        used: Callable[[], float] = time.process_time,
    ) -> None:
        self._clock = clock
        self._used = used
        self._at, self._spent = clock(), used()
        self._last = 0.0

    def read(self) -> float:
        """Return the average since the last reading, or since the meter was made; child processes apart."""
        at, spent = self._clock(), self._used()
        if at - self._at >= _SHORTEST:
            self._last = round((spent - self._spent) / (at - self._at), 3)
            self._at, self._spent = at, spent
        return self._last
