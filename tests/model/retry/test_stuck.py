"""When a claim is stuck, and what becomes of its job (S31)."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import SECOND
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import Event
from fairlane.model.retry.stuck import REQUEUE_DELAY, is_stuck, settle_stuck, stuck_limit
from tests.model.retry.test_decision import NOW
from tests.model.retry.test_decision import job as running


def job(**values: Any) -> JobRecord:
    """Return a job that began a hundred seconds ago and whose worker reports."""
    claim = {"started_at": NOW - 100 * SECOND, "lease_until": NOW + SECOND, "timeout": 50 * SECOND}
    return running(**{**claim, **values})


@pytest.mark.parametrize(
    ("values", "limit"),
    [
        ({}, 100 * SECOND),
        ({"stuck_after": 70 * SECOND}, 70 * SECOND),
        ({"timeout": None, "stuck_after": 70 * SECOND}, 70 * SECOND),
        ({"timeout": None}, None),
    ],
)
def test_the_limit_is_its_own_or_twice_its_timeout(values: dict[str, Any], limit: int | None) -> None:
    """And none without either."""
    assert stuck_limit(job(**values)) == limit


@pytest.mark.parametrize(
    ("values", "stuck"),
    [
        ({}, True),
        ({"started_at": NOW - 100 * SECOND + 1}, False),
        ({"lease_until": NOW}, False),
        ({"lease_until": None}, False),
        ({"started_at": None}, False),
        ({"timeout": None}, False),
    ],
)
def test_a_claim_is_stuck_if_it_is_old_and_its_lease_runs(values: dict[str, Any], *, stuck: bool) -> None:
    """One whose lease has ended is lost."""
    assert is_stuck(job(**values), NOW) is stuck


@pytest.mark.parametrize(
    ("values", "event", "delay"),
    [
        ({}, Event.STUCK, 0),
        ({"on_stuck": "requeue"}, Event.RETRY, REQUEUE_DELAY),
        ({"on_stuck": "requeue", "failures": 4}, Event.EXHAUST, 0),
        ({"on_stuck": "requeue", "at_most_once": True}, Event.STUCK, 0),
        ({"started_at": None, "timeout": None}, Event.STUCK, 0),
    ],
)
def test_a_stuck_job_is_dead_or_goes_back(values: dict[str, Any], event: Event, delay: int) -> None:
    """A failure of class `stuck` in any case, and never a crash."""
    found = settle_stuck(job(crashes=1, is_suspect=True, **values), NOW)
    assert (found.event, found.delay, found.outcome) == (event, delay, "failed")
    assert (found.failures, found.crashes, found.is_suspect) == (values.get("failures", 0) + 1, 1, False)
    assert found.failure is not None
    assert found.failure.error_class is ErrorClass.STUCK
    assert "exceeded timeout threshold" in str(found.because)
