"""Distinguish an outage of the store from the death of a worker (S38). Reads no clock."""

from __future__ import annotations

from typing import Final

from fairlane.model.instants import SECOND, Instant, Micros

GAP_MARGIN: Final[Micros] = 2 * SECOND
"""If all workers are silent for a renew interval plus this, the store was away."""

REST_MARGIN: Final[Micros] = SECOND
JUMP: Final[Micros] = 5 * SECOND


def is_gap(beat_at: Instant | None, now: Instant, renew_every: Micros) -> bool:
    """Whether a heartbeat at `now` ends a silence of all workers, or is the first.

    >>> is_gap(None, 0, 4 * SECOND), is_gap(0, 6 * SECOND, 4 * SECOND), is_gap(0, 7 * SECOND, 4 * SECOND)
    (True, False, True)
    """
    return beat_at is None or now - beat_at > renew_every + GAP_MARGIN


def rests_until(
    now: Instant, beat_at: Instant | None, resumed_at: Instant | None, renew_every: Micros
) -> Instant | None:
    """Return until when reclaiming pauses; None if it may go on.

    It pauses while all workers are silent, and for a renew interval and a second after the first is back, so
    that every live worker has time to renew.

    >>> rests_until(9 * SECOND, 9 * SECOND, 8 * SECOND, 4 * SECOND) // SECOND
    13
    >>> rests_until(14 * SECOND, 12 * SECOND, 8 * SECOND, 4 * SECOND) is None
    True
    """
    if beat_at is None or resumed_at is None or is_gap(beat_at, now, renew_every):
        return now + renew_every + REST_MARGIN
    rested = resumed_at + renew_every + REST_MARGIN
    return rested if now < rested else None


def is_jump(store_elapsed: Micros, own_elapsed: Micros) -> bool:
    """Whether the store's clock and the reclaimer's monotonic clock have diverged.

    >>> is_jump(10 * SECOND, 9 * SECOND), is_jump(-SECOND, 9 * SECOND)
    (False, True)
    """
    return abs(store_elapsed - own_elapsed) > JUMP
