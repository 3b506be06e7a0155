"""Everything wrong with a timing is said at once, each with what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.model.instants import HOUR, LAST_INSTANT, MINUTE, SECOND
from fairlane.model.schedule.problems import problems
from fairlane.model.schedule.timing import At, Cron, Every, Timing

FINE: list[Timing] = [
    Cron("0 9 * * MON"),
    Cron("0 9 13 * FRI", "and", "shift", "both", timezone="Asia/Tokyo"),
    Cron("@hourly", between=("09:00", "17:00"), weekdays=("MON",), holidays=("2026-12-25",)),
    Every(interval=SECOND),
    Every(interval=HOUR, anchor=90 * MINUTE, timezone="Europe/Berlin", between=("22:00", "06:00")),
    At(5, timezone="Europe/Berlin"),
]


@pytest.mark.parametrize("timing", FINE)
def test_nothing_is_wrong_with_a_good_timing(timing: Timing) -> None:
    """Whenever it is asked."""
    assert problems(timing) == problems(timing, 4) == []


def cron(**fields: Any) -> Cron:
    """Make a timing with anything in its fields."""
    return Cron(**{"expression": "0 9 * * *", **fields})


@pytest.mark.parametrize(
    ("timing", "says"),
    [
        (cron(expression="0 99 * * *"), "cron: hour '99' is not allowed; use 0-23"),
        (cron(expression=5), "cron: 5 is not text"),
        (cron(days="xor"), "days: 'xor' is unknown; use or or and"),
        (cron(missing="late"), "missing: 'late' is unknown; use first_valid or shift or skip"),
        (cron(repeated=["both"]), "repeated: ['both'] is unknown; use first or second or both"),
        (cron(timezone="Berlin"), "timezone: 'Berlin' is not a time zone; use Europe/Berlin"),
        (cron(timezone=None), "timezone: None is not text"),
        (cron(between=("9", "10:00")), "between: '9' is not a time of day; write it as 09:30"),
        (cron(between=("09:00",)), "between: ('09:00',) are not two times; write 09:30 and 16:00"),
        (cron(between="09:00"), "between: '09:00' are not two times"),
        (cron(between=(9, "10:00")), "between: 9 is not text; write it in quotes"),
        (cron(weekdays=("MONDAY",)), "weekdays: 'MONDAY' is not a weekday; use MON"),
        (cron(weekdays="MON"), "weekdays: 'MON' is not a list"),
        (cron(holidays=("2026-02-30",)), "holidays: '2026-02-30' is not a date; write it as 2026-12-25"),
        (cron(holidays=("2026-02-28",) * 1001), "holidays: has 1001 entries; give 1000 at the most"),
        (cron(expression="0 9 * * TUE", weekdays=("MON",)), "cron: has no run in 50 years"),
        (cron(expression="0 9 30 2 MON", days="and"), "cron: has no run in 50 years"),
        (Every(interval=SECOND - 1), "every: is not an interval of a second or more"),
        (Every(interval=LAST_INSTANT + 1), "every: is not an interval of a second or more"),
        (Every(interval=1.5), "every: is not an interval of a second or more"),  # type: ignore[arg-type]
        (Every(interval=SECOND + 1), "every: is not a whole number of milliseconds; round it"),
        (Every(interval=SECOND, anchor=-1), "anchor: -1 is not an instant"),
        (Every(interval=SECOND, anchor="x"), "anchor: 'x' is not an instant"),  # type: ignore[arg-type]
        (Every(interval=SECOND, anchor=1), "anchor: is not a whole number of milliseconds"),
        (Every(interval=7 * 24 * HOUR, weekdays=("MON",)), "every: has no run in 50 years"),
        (At(-1), "at: -1 is not an instant; give one from 1970 on, with its zone"),
        (At(LAST_INSTANT + 1), "at: "),
        (At("now"), "at: 'now' is not an instant"),  # type: ignore[arg-type]
        (At(5, timezone="Mars"), "timezone: 'Mars' is not a time zone"),
    ],
)
def test_what_is_wrong_is_said(timing: Timing, says: str) -> None:
    """The field first."""
    found = [problem.text for problem in problems(timing)]
    assert len(found) == 1
    assert found[0].startswith(says)


def test_a_single_run_must_be_to_come_when_it_is_saved() -> None:
    """A declared one that has run is found in the code at each start, and is no mistake."""
    assert problems(At(5)) == []
    assert problems(At(5), 4) == []
    assert [problem.text for problem in problems(At(5), 5)] == ["at: has passed; give an instant to come"]


def test_all_problems_are_said_at_once() -> None:
    """Those of every field."""
    timing = cron(expression="99 99 * * *", days=None, timezone="x", between=("x", "y"), weekdays=("x",))
    fields = [problem.field for problem in problems(timing)]
    assert fields == ["cron", "cron", "days", "timezone", "between", "between", "weekdays"]
