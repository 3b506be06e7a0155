"""When waiting jobs say that workers are too few."""

from __future__ import annotations

import pytest

from fairlane.model.instants import MINUTE, SECOND
from fairlane.model.job import JobRecord
from fairlane.model.scheduling.overload import LATE, LONG, Overload, overload
from tests.model.retry.test_decision import job

NOW = 10**15


def _next(*waits: tuple[str, int]) -> list[JobRecord]:
    return [job(tenant=tenant, run_at=NOW - waited) for tenant, waited in waits]


@pytest.mark.parametrize(
    ("waits", "found"),
    [
        ([], None),
        ([("a", LATE - 1), ("b", LATE - 1)], None),
        ([("a", LATE), ("b", 0)], None),
        ([("a", LATE), ("b", LATE)], Overload(LATE, 2)),
        ([("a", LATE), ("b", 14 * SECOND), ("c", 0)], Overload(14 * SECOND, 2)),
        ([("a", LATE), ("a", MINUTE)], None),
        ([("a", LONG - 1), ("a", 0)], None),
        ([("a", LONG), ("b", 0)], Overload(LONG, 1)),
    ],
)
def test_jobs_of_several_tenants_wait_too_long_after_ten_seconds_those_of_one_after_a_quarter_of_an_hour(
    waits: list[tuple[str, int]], found: Overload | None
) -> None:
    """A tenant alone in the order waits behind its own jobs."""
    assert overload(_next(*waits), NOW) == found
