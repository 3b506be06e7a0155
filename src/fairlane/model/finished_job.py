"""A job that has ended, whole: as it leaves a store for the archive and as it comes back (S105, S116).

Knows what such a job may be and how it is packed; no store and no file.
"""

from __future__ import annotations

from typing import Final

import msgspec

from fairlane.model.instants import LAST_INSTANT
from fairlane.model.job import MAX_ATTEMPTS_KEPT, JobRecord
from fairlane.model.lifecycle.states import State, is_finished
from fairlane.model.names import label_hint, name_hint, task_hint, tenant_hint
from fairlane.model.review import MAX_NOTES, ReviewRecord
from fairlane.model.scheduling.priority import HIGHEST, LOWEST, sort_key

_LARGEST: Final = 2**63 - 1
_LARGEST_SHORT: Final = 2**31 - 1

_SHORT: Final = (*("version", "max_attempts", "attempt", "failures", "crashes", "crashes_alone", "snoozes"),)
_LONG: Final = ("checksum", "fence", "timeout", "stuck_after")
_OF_A_CLAIM: Final = ("worker", "started_at", "lease_until", "progress")
_INSTANTS: Final = ("enqueued_at", "run_at", "expires_at", "settled_at")


class FinishedJob(msgspec.Struct, frozen=True):
    """A job in a terminal state with its attempts and result; a dead one with its review."""

    job: JobRecord
    review: ReviewRecord | None = None


pack_finished: Final = msgspec.msgpack.Encoder().encode
"""Encode a finished job, for a store that keeps it until it is archived."""

unpack_finished: Final = msgspec.msgpack.Decoder(FinishedJob).decode


def finished_job(job: JobRecord, review: ReviewRecord | None) -> FinishedJob:
    """Return a finished job; a dead one without a review is one that nobody has looked at.

    >>> from fairlane.model.job import NewJob
    >>> from fairlane.model.lifecycle.record_changes import new_record, stopped
    >>> from uuid import UUID
    >>> new = NewJob(id=UUID(int=1), tenant="a", queue="q", task="t", payload=b"", checksum=0)
    >>> finished_job(stopped(new_record(new, 5), State.DEAD, "exhausted", 6), None).review.review
    'pending'
    """
    if job.state is not State.DEAD:
        return FinishedJob(job)
    return FinishedJob(job, ReviewRecord() if review is None else review)


def problem_of(finished: FinishedJob) -> str | None:
    """Return why no store can take back such a job; None if it can.

    What was written by `finished_job` has no problem; what somebody has edited may have.
    """
    job = finished.job
    if not is_finished(job.state):
        return f"state: is {job.state.value}; only succeeded, cancelled and dead jobs can be brought back"
    if (finished.review is not None) is not (job.state is State.DEAD):
        return "review: belongs to a dead job, and to no other"
    if job.is_cancel_asked or any(getattr(job, name) is not None for name in _OF_A_CLAIM):
        return "worker: a job that has ended is on no worker"
    if job.settled_at is None:
        return "settled_at: is missing; say when the job ended"
    return (
        _name_problem(job)
        or _number_problem(job)
        or _content_problem(job)
        or _review_problem(finished.review)
    )


def _name_problem(job: JobRecord) -> str | None:
    hints = {
        "tenant": tenant_hint(job.tenant),
        "queue": name_hint(job.queue),
        "task": task_hint(job.task),
        "idempotency_key": label_hint(job.idempotency_key),
        "correlation_id": label_hint(job.correlation_id),
        "dedup_key": None if job.dedup_key is None else label_hint(job.dedup_key),
        "created_by": None if job.created_by is None else label_hint(job.created_by),
        "tags": next((hint for hint in map(label_hint, job.tags) if hint), None),
    }
    return next((f"{name}: {hint}" for name, hint in hints.items() if hint), None)


def _number_problem(job: JobRecord) -> str | None:
    bounds = (
        ("priority", LOWEST, HIGHEST),
        *((name, 0, _LARGEST_SHORT) for name in _SHORT),
        *((name, 0, _LARGEST) for name in _LONG),
        *((name, 1, LAST_INSTANT) for name in _INSTANTS),
    )
    for name, least, largest in bounds:
        value = getattr(job, name)
        if value is not None and not least <= value <= largest:
            return f"{name}: is {value}; from {least} to {largest} is possible"
    if job.sort_key != sort_key(job.run_at, job.priority):
        return "sort_key: does not follow from run_at and priority"
    return None


def _content_problem(job: JobRecord) -> str | None:
    try:
        is_object = isinstance(msgspec.json.decode(job.metadata), dict)
    except msgspec.DecodeError:
        is_object = False
    if not is_object:
        return "metadata: is no JSON object"
    if len(job.attempts) > MAX_ATTEMPTS_KEPT:
        return f"attempts: are {len(job.attempts)}; a job keeps at most {MAX_ATTEMPTS_KEPT}"
    fingerprints = (one.failure.fingerprint for one in job.attempts if one.failure is not None)
    if any("\0" in text for text in (job.because or "", *fingerprints)):
        return "because and fingerprint: may hold no NUL"
    return None


def _review_problem(review: ReviewRecord | None) -> str | None:
    if review is None:
        return None
    if len(review.notes) > MAX_NOTES:
        return f"review: has {len(review.notes)} notes; a letter keeps at most {MAX_NOTES}"
    if review.decided is not None and not 1 <= review.decided.at <= LAST_INSTANT:
        return f"review: was decided at {review.decided.at}; from 1 to {LAST_INSTANT} is possible"
    return None
