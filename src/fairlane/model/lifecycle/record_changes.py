"""Apply a decision to a job's record: enqueue, claim, settle, lose, stop, scrub.

Decides nothing itself: `admit`, `decide_settlement`, `reconcile` and `lose_lease` have.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlane.model.failure import Failure
from fairlane.model.instants import Instant, Micros
from fairlane.model.job import (
    ATTEMPTS_KEPT,
    AttemptOutcome,
    AttemptRecord,
    JobRecord,
    NewJob,
    Settlement,
)
from fairlane.model.lifecycle.states import Because, Event, State, because, is_finished, target
from fairlane.model.retry.decision import LeaseLoss
from fairlane.model.scheduling.priority import sort_key

_TIME: Final = because(Because.TIME)
_CLAIMED: Final = target(Event.CLAIM)

_replace = msgspec.structs.replace


def initial_state(new: NewJob, now: Instant) -> tuple[State, Instant]:
    """Return the first state of a job and when it is due; a time in the past means now (S2).

    >>> from uuid import UUID
    >>> job = NewJob(id=UUID(int=1), tenant="a", queue="q", task="t", payload=b"", checksum=0, run_at=5)
    >>> initial_state(job, 3), initial_state(job, 9)
    ((<State.DELAYED: 'delayed'>, 5), (<State.READY: 'ready'>, 9))
    """
    due_at = now + new.delay if new.run_at is None else new.run_at
    return (State.DELAYED, due_at) if due_at > now else (State.READY, now)


def initial_fields(new: NewJob, now: Instant) -> tuple[State, str | None, Instant, int, Instant | None]:
    """Return what is decided at the enqueue: state, because, `run_at`, sort key and expiry."""
    state, run_at = initial_state(new, now)
    return (
        state,
        _TIME if state is State.DELAYED else None,
        run_at,
        sort_key(run_at, new.priority),
        new.expires_at if new.expires_in is None else now + new.expires_in,
    )


def new_record(new: NewJob, now: Instant) -> JobRecord:
    """Return the record of a job that is enqueued now."""
    state, why, run_at, key, expires_at = initial_fields(new, now)
    own = str(new.id)
    return JobRecord(
        id=new.id,
        tenant=new.tenant,
        queue=new.queue,
        task=new.task,
        state=state,
        because=why,
        payload=new.payload,
        checksum=new.checksum,
        version=new.version,
        priority=new.priority,
        enqueued_at=now,
        run_at=run_at,
        sort_key=key,
        expires_at=expires_at,
        settled_at=None,
        idempotency_key=new.idempotency_key or own,
        dedup_key=new.dedup_key,
        dedup_until=new.dedup_until,
        correlation_id=new.correlation_id or own,
        parent_id=new.parent_id,
        max_attempts=new.max_attempts,
        timeout=new.timeout,
        at_most_once=new.at_most_once,
        tags=new.tags,
        metadata=new.metadata,
        created_by=new.created_by,
        stuck_after=new.stuck_after,
        on_stuck=new.on_stuck,
    )


def promoted(job: JobRecord) -> JobRecord:
    """Return a delayed job that has become due; it keeps its time and therefore its place."""
    return _replace(job, state=target(Event.DUE), because=None)


def due_now(job: JobRecord, now: Instant) -> JobRecord:
    """Return a delayed job that is due now."""
    return _replace(
        job, state=target(Event.RUN_NOW), because=None, run_at=now, sort_key=sort_key(now, job.priority)
    )


def claimed(job: JobRecord, worker: str, lease: Micros, now: Instant) -> JobRecord:
    """Return a ready job as claimed by a worker, with a larger fence than ever before (S36)."""
    return _replace(
        job,
        state=_CLAIMED,
        attempt=job.attempt + 1,
        fence=max(job.fence + 1, now),
        worker=worker,
        started_at=now,
        lease_until=now + lease,
    )


def stopped(job: JobRecord, state: State, reason: str, now: Instant) -> JobRecord:
    """Return a waiting job after it was cancelled, condemned or purged, or has expired."""
    return _replace(job, state=state, because=reason, settled_at=now)


def settled(job: JobRecord, settlement: Settlement, now: Instant, kept: int = ATTEMPTS_KEPT) -> JobRecord:
    """Return a running job after its reconciled settlement, with at most `kept` of its last attempts."""
    state = target(settlement.event)
    values: dict[str, Any] = {
        "state": state,
        "because": settlement.because,
        "failures": settlement.failures,
        "crashes": settlement.crashes,
        "crashes_alone": settlement.crashes_alone,
        "snoozes": settlement.snoozes,
        "is_suspect": settlement.is_suspect,
    }
    if settlement.metadata is not None:
        values["metadata"] = settlement.metadata
    if state is State.DELAYED:
        run_at = now + settlement.delay
        values |= {"run_at": run_at, "sort_key": sort_key(run_at, job.priority)}
    if is_finished(state):
        values |= {"settled_at": now, "result": settlement.result}
    if settlement.is_unstarted:
        return _unclaimed(job, {**values, "attempt": job.attempt - 1, "attempts": job.attempts})
    attempts = ended(job, settlement.outcome, settlement.failure, settlement.log, now, kept)
    return _unclaimed(job, {**values, "attempts": attempts})


def lost(job: JobRecord, loss: LeaseLoss, now: Instant, kept: int = ATTEMPTS_KEPT) -> JobRecord:
    """Return a running job after its claim was taken back; it is a suspect from now on (S39)."""
    values: dict[str, Any] = {
        "state": loss.state,
        "because": loss.because,
        "crashes": loss.crashes,
        "crashes_alone": 0,
        "is_suspect": True,
        "settled_at": now if is_finished(loss.state) else None,
    }
    return _unclaimed(job, {**values, "attempts": ended(job, loss.outcome, loss.failure, None, now, kept)})


def _unclaimed(job: JobRecord, values: dict[str, Any]) -> JobRecord:
    return _replace(
        job, worker=None, started_at=None, lease_until=None, is_cancel_asked=False, progress=None, **values
    )


def ended(
    job: JobRecord,
    outcome: AttemptOutcome,
    failure: Failure | None,
    log: str | None,
    now: Instant,
    kept: int = ATTEMPTS_KEPT,
) -> tuple[AttemptRecord, ...]:
    """Return the attempts to store once the running one has ended, the last `kept` (S24)."""
    started_at = now if job.started_at is None else job.started_at
    attempt = AttemptRecord(job.attempt, str(job.worker), started_at, now, outcome, failure, log)
    return (*job.attempts, attempt)[-kept:]


def scrubbed(job: JobRecord) -> JobRecord:
    """Return a finished job without its contents (S52): ids, state, counters and times remain."""
    return _replace(
        job,
        payload=b"",
        checksum=0,
        result=None if job.result is None else b"",
        because=None if job.because is None else job.because.partition(":")[0],
        idempotency_key=str(job.id),
        dedup_key=None,
        correlation_id=str(job.id),
        tags=(),
        metadata=b"{}",
        created_by=None,
        progress=None,
        attempts=tuple(_erased_attempt(attempt) for attempt in job.attempts),
    )


def _erased_attempt(attempt: AttemptRecord) -> AttemptRecord:
    failure = attempt.failure
    if failure is not None:
        failure = _replace(failure, error_type="", message="", traceback=None, fingerprint="")
    return _replace(attempt, failure=failure, log=None)
