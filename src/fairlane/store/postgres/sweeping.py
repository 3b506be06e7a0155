"""Where a pass over an index of instants begins: behind the dead entries that an old snapshot keeps.

What the last pass has left behind is found by a pass over everything, once in a while.
"""

from __future__ import annotations

from typing import Final

from fairlane.model.instants import SECOND, Instant, Micros

_SWEEP_EVERY: Final = 60
_CHEAP: Final[Micros] = SECOND // 50
"""As long as looking at everything takes less, everything is looked at by every pass that measures it. Two
passes a second do: beside an old snapshot that may be a twenty-fifth of a core, and no more."""


class Floor:
    """The floor of one recurring pass. Statements go some seconds deeper, more after a clock went back."""

    def __init__(self) -> None:
        """Begin with a sweep."""
        self._last: Instant = 0
        self._passes = 0

    def __call__(self) -> Instant:
        """Give the instant from which on this pass looks; 0 for a sweep."""
        return self._last if self._passes % _SWEEP_EVERY else 0

    def passed(self, at: Instant, *, is_whole: bool, took: Micros = SECOND) -> None:
        """Note a pass; one that left something behind, or a cheap sweep, is followed by a sweep."""
        is_cheap = self() == 0 and took < _CHEAP
        self._last = at
        self._passes = self._passes + 1 if is_whole and not is_cheap else 0
