"""What becomes of a job whose claim an operator ends (S72)."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import SECOND
from fairlane.model.lifecycle.states import Event, State
from fairlane.model.retry.revoke import RevokeAnswer, RevokeHow, answer_revoke, settle_revoked
from tests.model.retry.test_decision import job


@pytest.mark.parametrize(
    ("values", "how", "answer"),
    [
        ({}, "retry", "revoked"),
        ({}, "dead", "revoked"),
        ({}, "return", "revoked"),
        ({"at_most_once": True}, "retry", "at_most_once"),
        ({"at_most_once": True}, "return", "at_most_once"),
        ({"at_most_once": True}, "dead", "revoked"),
        ({"state": State.READY}, "dead", "revoked"),
        ({"state": State.DELAYED}, "dead", "revoked"),
        ({"state": State.DELAYED}, "retry", "not_running"),
        ({"state": State.READY, "at_most_once": True}, "return", "not_running"),
        ({"state": State.DEAD}, "dead", "not_running"),
        ({"state": State.SUCCEEDED}, "return", "not_running"),
    ],
)
def test_what_may_be_revoked(values: dict[str, Any], how: RevokeHow, answer: RevokeAnswer) -> None:
    """Running jobs; waiting ones only to be dead; at most once only to be dead."""
    assert answer_revoke(job(**{"state": State.RUNNING, **values}), how) == answer


@pytest.mark.parametrize(
    ("how", "values", "event", "error_class", "failures", "delay"),
    [
        ("retry", {}, Event.RETRY, ErrorClass.RETRYABLE, 1, 7 * SECOND),
        ("retry", {"failures": 4}, Event.EXHAUST, ErrorClass.RETRYABLE, 5, 0),
        ("dead", {}, Event.FAIL, ErrorClass.NON_RETRYABLE, 1, 0),
        ("return", {}, Event.HAND_BACK, ErrorClass.RETRYABLE, 0, 0),
        ("return", {"failures": 4}, Event.HAND_BACK, ErrorClass.RETRYABLE, 4, 0),
    ],
)
def test_what_follows(
    how: RevokeHow,
    values: dict[str, Any],
    event: Event,
    error_class: ErrorClass,
    failures: int,
    delay: int,
) -> None:
    """Counters of crashes, snoozes and suspicion stay; the reason is in the attempt's failure."""
    kept = {"crashes": 2, "crashes_alone": 1, "snoozes": 3, "is_suspect": True}
    settlement = settle_revoked(job(max_attempts=5, **kept, **values), how, 7 * SECOND, "by hand")
    assert (settlement.event, settlement.failures, settlement.delay) == (event, failures, delay)
    assert {name: getattr(settlement, name) for name in kept} == kept
    assert settlement.failure is not None
    assert (settlement.failure.error_class, settlement.failure.message) == (error_class, "by hand")
    assert settlement.outcome == ("returned" if how == "return" else "failed")
