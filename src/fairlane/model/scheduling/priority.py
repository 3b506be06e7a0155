"""Priority: the order of jobs inside a tenant (S19, S20), a number fixed at enqueue that ages by itself."""

from __future__ import annotations

from typing import Final

from fairlane.model.instants import SECOND, Instant, Micros

LOWEST: Final = -100
HIGHEST: Final = 100

STEP: Final[Micros] = 6 * SECOND
"""One point of priority equals this much waiting time: 100 points are ten minutes."""


def sort_key(due_at: Instant, priority: int) -> int:
    """Return the sort key of a waiting job; the smallest goes first.

    >>> sort_key(1_000_000_000, 100) == sort_key(400_000_000, 0)
    True
    """
    return due_at - priority * STEP


def is_priority(value: object) -> bool:
    """Whether a value is a legal priority: an int, not a bool, from -100 to 100.

    >>> is_priority(100), is_priority(101), is_priority(True)
    (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and LOWEST <= value <= HIGHEST


def at_edge(priority: int, *, lower_first: bool) -> int:
    """Convert between the stores' direction and that of an application whose small numbers go first.

    Works in both directions.

    >>> at_edge(5, lower_first=True), at_edge(5, lower_first=False)
    (-5, 5)
    """
    return -priority if lower_first else priority
