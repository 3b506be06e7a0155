"""A timing is said in words, with its zone."""

from __future__ import annotations

import pytest

from fairlane.model.instants import DAY, HOUR, MINUTE, SECOND
from fairlane.model.schedule.timing import At, Cron, Every, Timing
from fairlane.model.schedule.words import describe


@pytest.mark.parametrize(
    ("timing", "words"),
    [
        (Cron("0 9 * * 1", timezone="America/New_York"), "At 09:00 on Monday, New York"),
        (Cron("@daily"), "At 00:00 every day, UTC"),
        (Cron("0 3 * * FRIL"), "At 03:00 on the last Friday of the month, UTC"),
        (
            Cron("0 0 13 * FRI", days="and"),
            "At 00:00 on the 13th day of month and on Friday, only where both days match, UTC",
        ),
        (
            Cron("*/5 * * * MON-FRI", timezone="America/New_York", between=("09:30", "16:00")),
            "Every fifth minute of every hour on Monday through Friday, from 09:30 to 16:00, New York",
        ),
        (Every(interval=MINUTE), "Every minute"),
        (Every(interval=15 * MINUTE), "Every 15 minutes"),
        (Every(interval=90 * MINUTE), "Every 90 minutes"),
        (Every(interval=DAY), "Every day"),
        (Every(interval=3 * SECOND // 2), "Every 1.5 seconds"),
        (Every(interval=HOUR, anchor=5 * MINUTE), "Every hour, counted from 1970-01-01 00:05:00 UTC"),
        (
            Every(interval=HOUR, weekdays=("sun", "MON", "tue"), holidays=("2026-12-25",)),
            "Every hour, on Monday, Tuesday and Sunday, not on 1 holiday, UTC",
        ),
        (
            Every(interval=HOUR, holidays=("2026-12-24", "2026-12-25"), timezone="Europe/Berlin"),
            "Every hour, not on 2 holidays, Berlin",
        ),
        (At(0), "Once, at 1970-01-01 00:00:00 UTC"),
        (At(0, timezone="Europe/Berlin"), "Once, at 1970-01-01 01:00:00, Berlin"),
    ],
)
def test_a_timing_in_words(timing: Timing, words: str) -> None:
    """As a person would read it."""
    assert describe(timing) == words
