"""Decide what becomes of a job whose claim an operator ends (S72). Knows no clock and no store."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.fingerprint import marked
from fairlane.model.instants import Micros
from fairlane.model.job import JobRecord, Settlement
from fairlane.model.lifecycle.states import TRANSITIONS, Because, Event, because

RevokeHow: TypeAlias = Literal["retry", "dead", "return"]
"""What follows: the attempt failed and the job is tried again, or is dead; or the job goes back as it was."""

RevokeAnswer: TypeAlias = Literal["revoked", "not_running", "at_most_once"]

_replace = msgspec.structs.replace


def answer_revoke(job: JobRecord, how: RevokeHow) -> RevokeAnswer:
    """Return whether a job may be revoked so, or why not.

    Only `dead` applies to a waiting job, which is condemned then, and to one that runs at most once.

    >>> from fairlane.model.job import NewJob
    >>> from fairlane.model.lifecycle.record_changes import new_record
    >>> from uuid import UUID
    >>> new = NewJob(id=UUID(int=1), tenant="a", queue="q", task="t", payload=b"", checksum=0)
    >>> answer_revoke(new_record(new, 0), "dead"), answer_revoke(new_record(new, 0), "return")
    ('revoked', 'not_running')
    """
    if (job.state, Event.CONDEMN) in TRANSITIONS and how == "dead":
        return "revoked"
    if (job.state, Event.HAND_BACK) not in TRANSITIONS:
        return "not_running"
    return "at_most_once" if job.at_most_once and how != "dead" else "revoked"


def settle_revoked(job: JobRecord, how: RevokeHow, delay: Micros, reason: str) -> Settlement:
    """Decide what becomes of a running job; `reconcile` corrects it as any other settlement.

    A claim that an operator ends says nothing about the worker: it neither makes a suspect nor clears one
    (S39). `delay` is that of a retry.
    """
    back = Settlement(
        id=job.id,
        fence=job.fence,
        event=Event.HAND_BACK,
        outcome="returned",
        failures=job.failures,
        crashes=job.crashes,
        crashes_alone=job.crashes_alone,
        snoozes=job.snoozes,
        is_suspect=job.is_suspect,
        failure=Failure(ErrorClass.RETRYABLE, "TakenBack", reason),
    )
    if how == "return":
        return back
    error_class = ErrorClass.NON_RETRYABLE if how == "dead" else ErrorClass.RETRYABLE
    failed = _replace(
        back,
        event=Event.FAIL,
        outcome="failed",
        because=because(Because.FAILED, reason),
        failures=job.failures + 1,
        failure=marked(job.task, Failure(error_class, "FailedByHand", reason)),
    )
    if how == "dead":
        return failed
    if failed.failures >= job.max_attempts:
        return _replace(failed, event=Event.EXHAUST, because=because(Because.EXHAUSTED, reason))
    return _replace(
        failed, event=Event.RETRY, because=because(Because.RETRY, f"{error_class}: {reason}"), delay=delay
    )
