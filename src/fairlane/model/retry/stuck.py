"""Decide when a claim is stuck, and what becomes of its job (S31). Knows no clock and no store.

A stuck job has a worker that still renews its lease, so it is not lost: it runs far longer than it may. Its
worker should have stopped it at its timeout; that it did not is a defect of the handler or of the worker.
"""

from __future__ import annotations

from typing import Final

import msgspec

from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.fingerprint import marked
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.job import JobRecord, Settlement
from fairlane.model.lifecycle.states import Because, Event, because

STUCK_FACTOR: Final = 2
"""Without a limit of its own, a claim is stuck at this many times its timeout."""

REQUEUE_DELAY: Final[Micros] = 15 * SECOND
"""How long a stuck job that goes back waits: its old worker notices at its next renewal, and has then stopped
the handler or given it up."""

_replace = msgspec.structs.replace


def stuck_limit(job: JobRecord) -> Micros | None:
    """Return how old a claim of this job may be; None where there is no limit.

    >>> from fairlane.model.job import NewJob
    >>> from fairlane.model.lifecycle.record_changes import new_record
    >>> from uuid import UUID
    >>> new = NewJob(id=UUID(int=1), tenant="a", queue="q", task="t", payload=b"", checksum=0, timeout=60)
    >>> stuck_limit(new_record(new, 0))
    120
    """
    if job.stuck_after is not None:
        return job.stuck_after
    return None if job.timeout is None else STUCK_FACTOR * job.timeout


def is_stuck(job: JobRecord, now: Instant) -> bool:
    """Whether a running job is older than it may be while its lease still runs: its worker reports."""
    limit = stuck_limit(job)
    if limit is None or job.started_at is None or job.lease_until is None:
        return False
    return job.started_at + limit <= now < job.lease_until


def settle_stuck(job: JobRecord, now: Instant) -> Settlement:
    """Decide what becomes of a stuck job: dead, or delayed for another attempt if `on_stuck` says so.

    It is a failure of class `stuck`. `reconcile` corrects it as any other settlement.
    """
    ran = (now - (now if job.started_at is None else job.started_at)) // SECOND
    limit = (stuck_limit(job) or 0) / SECOND
    message = f"exceeded timeout threshold of {limit:g} s: it ran for {ran} s on worker {job.worker}"
    failures = job.failures + 1
    base = Settlement(
        id=job.id,
        fence=job.fence,
        event=Event.STUCK,
        outcome="failed",
        because=because(Because.STUCK, message),
        failures=failures,
        crashes=job.crashes,
        snoozes=job.snoozes,
        failure=marked(job.task, Failure(ErrorClass.STUCK, "Stuck", message)),
    )
    if job.on_stuck == "dead" or job.at_most_once:
        return base
    if failures >= job.max_attempts:
        return _replace(base, event=Event.EXHAUST, because=because(Because.EXHAUSTED, message))
    reason = because(Because.RETRY, f"{ErrorClass.STUCK}: {message}")
    return _replace(base, event=Event.RETRY, because=reason, delay=REQUEUE_DELAY)
