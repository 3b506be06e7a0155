"""What happened, as entries of the events (S76). Copies no payload and no message of an error.

Stores that make an entry inside the server (PostgreSQL, Redis) are held to these functions by the contract
suite.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

import msgspec

from fairlane.model.failure import Failure
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.job import JobRecord
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.kinds import EventKind
from fairlane.model.lifecycle.states import State

_encode: Final = msgspec.json.Encoder(order="sorted").encode


def last_failure(job: JobRecord) -> Failure | None:
    """Return the failure of the last attempt that has one."""
    failures = [attempt.failure for attempt in job.attempts if attempt.failure is not None]
    return failures[-1] if failures else None


def fingerprint_of(job: JobRecord) -> str:
    """Return the fingerprint of the last failure; empty if the job has none, or no failure."""
    failure = last_failure(job)
    return "" if failure is None else failure.fingerprint


def deaths(jobs: Iterable[JobRecord]) -> tuple[NewEntry, ...]:
    """Return the events of jobs that died in one step: one for each tenant, queue, task and fingerprint.

    It names the job with the smallest id. A job that died without a failure has its task as the subject.
    """
    groups: dict[tuple[str, str, str, str], list[JobRecord]] = {}
    for job in jobs:
        groups.setdefault((job.tenant, job.queue, job.task, fingerprint_of(job)), []).append(job)
    return tuple(_death(group, fingerprint) for (*_, fingerprint), group in groups.items())


def _death(group: list[JobRecord], fingerprint: str) -> NewEntry:
    job = min(group, key=lambda one: one.id)
    failure = last_failure(job)
    return NewEntry(
        kind=EventKind.DEAD_LETTER.value,
        tenant=job.tenant,
        subject=_cause(job, fingerprint),
        count=len(group),
        body=_about(
            job,
            because=(job.because or "").partition(":")[0],
            error_class=None if failure is None else failure.error_class.value,
        ),
    )


def over_limit(
    tenant: str, queue: str, waiting: int, limit: int, count: int, created_by: str | None
) -> NewEntry:
    """Return the event of jobs that were stored above a tenant's waiting limit: how many wait now.

    `created_by` is that of the last such job.
    """
    body = _encode({"queue": queue, "waiting": waiting, "limit": limit, "created_by": created_by})
    return NewEntry(
        kind=EventKind.JOB_LIMIT_WARNING.value, tenant=tenant, subject=queue, count=count, body=body
    )


def stuck(job: JobRecord, state: State) -> NewEntry:
    """Return the event of a stuck claim, given its job as it ran and the state of the job now."""
    body = _about(job, worker=job.worker, state=state.value)
    return NewEntry(kind=EventKind.JOB_STUCK.value, tenant=job.tenant, subject=job.task, body=body)


def reviewed(job: JobRecord, fingerprint: str, review: str) -> NewEntry:
    """Return the event of a decision about a dead letter; `deleted` is one, too."""
    return _about_letter(EventKind.DEAD_LETTER_REVIEWED, job, fingerprint, review=review)


def reprocess_requested(job: JobRecord, fingerprint: str, new_job: UUID) -> NewEntry:
    """Return the event of a dead job in whose place another one runs now."""
    return _about_letter(EventKind.REPROCESS_REQUESTED, job, fingerprint, new_job=str(new_job))


def reprocess_success(job: JobRecord, fingerprint: str, new_job: UUID) -> NewEntry:
    """Return the event of a dead job in whose place another one has succeeded."""
    return _about_letter(EventKind.REPROCESS_SUCCESS, job, fingerprint, new_job=str(new_job))


def dlq_alert(pending: int, threshold: int) -> NewEntry:
    """Return the event of more dead letters that await a decision than a threshold allows."""
    body = _encode({"count": pending, "threshold": threshold})
    return NewEntry(kind=EventKind.DLQ_ALERT.value, body=body)


def letters_expire(pending: int, within: Micros) -> NewEntry:
    """Return the event of pending dead letters that the retention will remove within a duration."""
    body = _encode({"count": pending, "within_seconds": within // SECOND})
    return NewEntry(kind=EventKind.DEAD_LETTERS_EXPIRE.value, count=pending, body=body)


def worker_lost(worker: str, claims: int, queues: Iterable[str]) -> NewEntry:
    """Return the event of a worker whose leases expired, with the queues of the jobs it held."""
    body = _encode({"queues": sorted(set(queues))})
    return NewEntry(kind=EventKind.WORKER_LOST.value, subject=worker, count=claims, body=body)


def breaker_opened(breaker: str, tenant: str, until: Instant, reason: str) -> NewEntry:
    """Return the event of a breaker that lets nobody pass until then; with a tenant, none of that tenant."""
    body = _encode({"breaker": breaker, "until": until, "reason": reason})
    return NewEntry(
        kind=EventKind.BREAKER_OPENED.value, tenant=tenant or None, subject=f"breaker {breaker}", body=body
    )


def breaker_closed(breaker: str, tenant: str) -> NewEntry:
    """Return the event of a breaker that lets everybody pass again."""
    body = _encode({"breaker": breaker})
    return NewEntry(
        kind=EventKind.BREAKER_CLOSED.value, tenant=tenant or None, subject=f"breaker {breaker}", body=body
    )


def events_lost(lost: int) -> NewEntry:
    """Return the event of events that were counted and not kept."""
    return NewEntry(kind=EventKind.EVENTS_LOST.value, count=lost, body=_encode({"count": lost}))


def _about_letter(kind: EventKind, job: JobRecord, fingerprint: str, **more: str) -> NewEntry:
    subject = _cause(job, fingerprint)
    return NewEntry(kind=kind.value, tenant=job.tenant, subject=subject, body=_about(job, **more))


def _cause(job: JobRecord, fingerprint: str) -> str:
    """Return the subject of events about dead jobs; so those of one cause are one storm, and are folded."""
    return fingerprint or job.task


def _about(job: JobRecord, **more: Any) -> bytes:
    known = {"job": str(job.id), "queue": job.queue, "task": job.task, "created_by": job.created_by}
    return _encode({**known, **more})
