"""The kinds of events: each has a severity and somebody whom it concerns (S76)."""

from __future__ import annotations

from fairlane.model.journal.kinds import KINDS, EventKind, severity_of


def test_every_kind_says_how_severe_it_is_and_whom_it_concerns() -> None:
    """A kind without a row could not be shown."""
    assert set(KINDS) == set(EventKind)


def test_what_concerns_whoever_created_the_job() -> None:
    """A limit that was reached, and a job that was run again for them; all else is for operators."""
    assert {kind for kind, found in KINDS.items() if found.addressee == "creator"} == {
        EventKind.JOB_LIMIT_WARNING,
        EventKind.REPROCESS_SUCCESS,
    }


def test_what_cannot_wait_is_critical() -> None:
    """A stuck job, too many dead letters, a budget that is spent, and what the doctor finds bad."""
    critical = {kind for kind in EventKind if severity_of(kind.value) == "critical"}
    stuck, many, spent = EventKind.JOB_STUCK, EventKind.DLQ_ALERT, EventKind.BUDGET_SPENT
    assert critical == {stuck, many, spent, EventKind.FINDING_CRITICAL}


def test_a_kind_of_a_newer_version_is_a_warning() -> None:
    """An older reader must be able to show it."""
    assert severity_of("planet_hit") == "warning"
