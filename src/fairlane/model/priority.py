"""The order inside a tenant (S19, S20): a plain number, fixed at enqueue, that ages by itself."""

from __future__ import annotations

from typing import Final

from fairlane.model.instants import SECOND, Instant, Micros

LOWEST: Final = -100
HIGHEST: Final = 100

STEP: Final[Micros] = 6 * SECOND
"""What one point of priority is worth: 100 points are ten minutes."""


def sort_key(due_at: Instant, priority: int) -> int:
    """Give the key that waiting jobs are ordered by, smallest first.

    >>> sort_key(1_000_000_000, 100) == sort_key(400_000_000, 0)
    True
    """
    return due_at - priority * STEP


def is_priority(value: object) -> bool:
    """Whether a value may be a priority: an int, not a bool, from -100 to 100.

    >>> is_priority(100), is_priority(101), is_priority(True)
    (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and LOWEST <= value <= HIGHEST


def at_edge(priority: int, *, lower_first: bool) -> int:
    """Translate between the stores' one direction and an application whose small numbers go first.

    Works both ways, for what comes in and for what is shown.

    >>> at_edge(5, lower_first=True), at_edge(5, lower_first=False)
    (-5, 5)
    """
    return -priority if lower_first else priority
