"""Silence of all workers is the store's, and reclaiming rests until everyone could report back (S38)."""

from __future__ import annotations

import pytest

from fairlane.model.instants import SECOND
from fairlane.model.lifecycle.outage import is_gap, is_jump, rests_until

RENEW = 4 * SECOND


@pytest.mark.parametrize(
    ("beat_at", "now", "is_silence"),
    [
        (None, 0, True),
        (None, 10**18, True),
        (0, 0, False),
        (0, 4 * SECOND, False),
        (0, 6 * SECOND, False),
        (0, 6 * SECOND + 1, True),
        (0, 60 * SECOND, True),
        (10 * SECOND, 0, False),
    ],
)
def test_a_silence_is_longer_than_a_renew_interval_and_two_seconds(
    beat_at: int | None, now: int, is_silence: bool
) -> None:
    """Exactly so long is none; before the first heartbeat there was nothing but silence."""
    assert is_gap(beat_at, now, RENEW) is is_silence


@pytest.mark.parametrize(
    ("now", "beat_at", "resumed_at", "until"),
    [
        (0, None, None, 5),  # nobody has reported yet
        (7, 0, 0, 12),  # all silent: at the earliest from now on
        (60, 0, 0, 65),
        (20, 20, 20, 25),  # the first one is back
        (24, 24, 20, 25),
        (25, 24, 20, None),  # everyone who lives has had the time to renew
        (40, 38, 20, None),
        (40, 38, None, 45),  # a heartbeat without a beginning
    ],
)
def test_reclaiming_rests_while_all_are_silent_and_a_renewal_longer(
    now: int, beat_at: int | None, resumed_at: int | None, until: int | None
) -> None:
    """One renew interval and a second after the first heartbeat back."""
    beat = None if beat_at is None else beat_at * SECOND
    resumed = None if resumed_at is None else resumed_at * SECOND
    found = rests_until(now * SECOND, beat, resumed, RENEW)
    assert found == (None if until is None else until * SECOND)


def test_one_workers_death_does_not_stop_reclaiming() -> None:
    """Others still report, so its jobs run elsewhere: lease, pass and rest together stay below 18 s."""
    assert rests_until(13 * SECOND, 12 * SECOND, 0, RENEW) is None


@pytest.mark.parametrize(
    ("store", "own", "has_jumped"),
    [
        (1, 1, False),
        (6, 1, False),
        (1, 6, False),
        (6.000_001, 1, True),
        (1, 6.000_001, True),
        (-3600, 1, True),
    ],
)
def test_a_clock_that_moved_otherwise_by_more_than_five_seconds_has_jumped(
    store: float, own: float, has_jumped: bool
) -> None:
    """Forwards or backwards, against the reclaimer's monotonic clock."""
    assert is_jump(round(store * SECOND), round(own * SECOND)) is has_jumped
