"""What happened, as entries of the events: exactly what they hold, and what they never copy (S76)."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec
import pytest

from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.job import AttemptRecord, JobRecord
from fairlane.model.journal import facts
from fairlane.model.journal.entries import NewEntry
from fairlane.model.lifecycle.states import State
from tests.model.retry.test_decision import job

FAILURE: Final = Failure(ErrorClass.TIMEOUT, "TimeoutError", "secret words", "secret trace", "f" * 16)
OTHER: Final = Failure(ErrorClass.CRASH, "LostLease", "gone", None, "e" * 16)


def attempt(number: int, failure: Failure | None) -> AttemptRecord:
    """Return an attempt that ended so."""
    return AttemptRecord(number, "w1", 1, 2, "succeeded" if failure is None else "failed", failure)


def dead(number: int = 7, *failures: Failure | None, **values: Any) -> JobRecord:
    """Return a dead job whose attempts ended with these failures."""
    attempts = tuple(attempt(n, failure) for n, failure in enumerate(failures, 1))
    known = {"state": State.DEAD, "because": "exhausted: secret words", "payload": b"secret"}
    return job(**{**known, "id": UUID(int=number), "attempts": attempts, "created_by": "zoë", **values})


def body(entry: NewEntry) -> dict[str, Any]:
    """Decode what an entry says; it must be JSON with sorted keys and without secrets."""
    assert b"secret" not in entry.body
    found: dict[str, Any] = msgspec.json.decode(entry.body)
    assert entry.body == msgspec.json.encode(found, order="sorted")
    return found


def about(number: int = 7, **more: Any) -> dict[str, Any]:
    """Return what every entry says about a job."""
    known = {"job": str(UUID(int=number)), "queue": "bulk", "task": "send", "created_by": "zoë"}
    return {**known, **more}


def test_the_last_failure_is_that_of_the_last_attempt_that_has_one() -> None:
    """Attempts that were handed back or snoozed come after it; a job that never failed has none."""
    assert facts.last_failure(dead(7, OTHER, FAILURE, None)) == FAILURE
    assert facts.last_failure(dead(7, None)) is None
    assert facts.last_failure(dead()) is None


def test_a_death_names_its_job_why_and_its_class() -> None:
    """The subject is the cause; of the reason only its word is told."""
    (entry,) = facts.deaths([dead(7, OTHER, FAILURE)])
    assert msgspec.structs.replace(entry, body=b"") == NewEntry(
        kind="dead_letter", tenant="acme", subject="f" * 16, count=1, body=b""
    )
    assert body(entry) == about(because="exhausted", error_class="timeout")


@pytest.mark.parametrize("because", ["condemned", "condemned: why", None])
def test_a_death_without_a_failure_has_its_task_as_the_subject(because: str | None) -> None:
    """As has one whose failure has no fingerprint: it died under a version that made none."""
    (entry,) = facts.deaths([dead(because=because)])
    assert entry.subject == "send"
    assert body(entry) == about(because="condemned" if because else "", error_class=None)
    (old,) = facts.deaths([dead(7, msgspec.structs.replace(FAILURE, fingerprint=""), because=because)])
    assert (old.subject, body(old)["error_class"]) == ("send", "timeout")


def test_deaths_of_one_cause_are_one_entry_that_names_the_smallest_id() -> None:
    """Each tenant, queue, task and cause has its own, in the order in which they were met."""
    jobs = [
        dead(5, FAILURE),
        dead(9, FAILURE),
        dead(3, FAILURE),
        dead(1, OTHER),
        dead(2, FAILURE, tenant="globex"),
        dead(4, FAILURE, queue="mail"),
        dead(6, FAILURE, task="sort"),
        dead(8),
    ]
    entries = facts.deaths(jobs)
    assert [(entry.count, body(entry)["job"][-1]) for entry in entries] == [
        (3, "3"),
        (1, "1"),
        (1, "2"),
        (1, "4"),
        (1, "6"),
        (1, "8"),
    ]
    assert sum(entry.count for entry in entries) == len(jobs)
    assert facts.deaths([]) == ()


def test_a_job_above_the_limit_tells_how_many_wait() -> None:
    """To whoever sent it."""
    entry = facts.over_limit("acme", "bulk", 502, 500, 2, "zoë")
    assert (entry.kind, entry.tenant, entry.subject, entry.count) == ("job_limit_warning", "acme", "bulk", 2)
    assert body(entry) == {"queue": "bulk", "waiting": 502, "limit": 500, "created_by": "zoë"}


def test_a_stuck_claim_names_its_worker_and_what_became_of_its_job() -> None:
    """Given the job as it ran."""
    entry = facts.stuck(dead(7, worker="w9", state=State.RUNNING), State.DELAYED)
    assert (entry.kind, entry.tenant, entry.subject, entry.count) == ("job_stuck", "acme", "send", 1)
    assert body(entry) == about(worker="w9", state="delayed")


def test_a_review_names_the_letter_and_what_was_decided() -> None:
    """`deleted` as well, which is no review. Its subject is the cause, so that many are folded."""
    for review in ("resolved", "deleted"):
        entry = facts.reviewed(dead(), "", review)
        assert (entry.kind, entry.tenant) == ("dead_letter_reviewed", "acme")
        assert entry.subject == "send"
        assert facts.reviewed(dead(), "f1", review).subject == "f1"
        assert body(entry) == about(review=review)


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        (facts.reprocess_requested, "job_dlq_reprocess_requested"),
        (facts.reprocess_success, "job_dlq_reprocess_success"),
    ],
)
def test_a_new_run_names_both_jobs(told: Any, kind: str) -> None:
    """The subject is the cause, so that those of a bulk action are folded."""
    entry = told(dead(), "", UUID(int=8))
    assert (entry.kind, entry.tenant, entry.subject) == (kind, "acme", "send")
    assert told(dead(), "f1", UUID(int=8)).subject == "f1"
    assert body(entry) == about(new_job=str(UUID(int=8)))
