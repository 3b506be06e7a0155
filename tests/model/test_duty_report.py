"""What is said of a duty: when it is overdue, and how long it rests after failures (S104)."""

from __future__ import annotations

import pytest

from fairlane.model.duty_report import LAST_RETRY, DutyReport, overdue, retry_after
from fairlane.model.instants import MINUTE, SECOND

REPORT = DutyReport(name="prune", worker="w", began_at=10, took=5, late=0, next_at=100)


@pytest.mark.parametrize(("at", "late"), [(0, 0), (100, 0), (101, 1), (160, 60)])
def test_a_duty_is_overdue_from_when_its_next_pass_was_due(at: int, late: int) -> None:
    """Never by less than nothing."""
    assert overdue(REPORT, at) == late


def test_the_pause_after_failures_grows_and_is_bounded() -> None:
    """Half a minute, then twice as long each time, five minutes at most."""
    assert [retry_after(number) for number in (1, 2, 3, 4)] == [n * 30 * SECOND for n in (1, 2, 4, 8)]
    assert retry_after(5) == retry_after(10_000) == LAST_RETRY == 5 * MINUTE
