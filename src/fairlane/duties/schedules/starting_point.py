"""Where a scheduler begins among what is due, so that several do not take the same. Asks no store.

Nothing depends on it but the work that is done in vain: the unique slot decides (S57).
"""

from __future__ import annotations

from typing import Final

from fairlane.store.contract.schedules import MAX_SCHEDULE_CHANGES, MAX_SKIPPED

STEP: Final = 3 * MAX_SCHEDULE_CHANGES
"""How much further behind a scheduler goes: whoever is in front of it does not catch up with it at once."""

PASSES: Final = 10
"""How many passes it stays there: who is in front may be gone, and the oldest slots must not wait long."""


class StartingPoint:
    """At the front, unless others are faster there; then a step behind them.

    >>> point = StartingPoint()
    >>> point.move(found=100, overtaken=100)
    >>> point.skip
    300
    >>> point.move(found=0, overtaken=0)
    >>> point.skip
    0
    """

    def __init__(self) -> None:
        self.skip = 0
        self._passes = 0

    def move(self, found: int, overtaken: int) -> None:
        """Choose the point for the next pass, by what this one has found and others have had first."""
        self._passes += 1
        if overtaken:
            self.skip = (self.skip + STEP) % MAX_SKIPPED
            self._passes = 0
        elif not found or self._passes == PASSES:
            self.skip = self._passes = 0
