"""A job as JSON for programs; secrets are redacted unless they are to be revealed (S6). Asks no store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fairlane.app.job import Attempt, Job
from fairlane.app.redaction import REDACTED, Redactor
from fairlane.model.instants import iso
from fairlane.model.job import JobRecord, Progress
from fairlane.model.payload.encoding import decode_arguments, decode_result
from fairlane.model.payload.enums import NO_ENUMS
from fairlane.model.payload.reading import Undecodable

_NOT_READABLE: Final = "cannot be read"


def job_json(job: Job[Any], redactor: Redactor = REDACTED) -> dict[str, Any]:
    """Return a job's public fields, for programs."""
    return {
        "id": str(job.id),
        "tenant": job.tenant,
        "queue": job.queue,
        "task": job.task,
        "state": job.state.value,
        "because": redactor.text(job.because),
        "created": job.created,
        "priority": job.priority,
        "attempt": job.attempt,
        "failures": job.failures,
        "max_attempts": job.max_attempts,
        "enqueued_at": iso(job.enqueued_at),
        "run_at": iso(job.run_at),
        "expires_at": iso(job.expires_at),
        "settled_at": iso(job.settled_at),
        "correlation_id": redactor.text(job.correlation_id),
        "created_by": redactor.text(job.created_by),
        "schedule": job.schedule,
        "slot": iso(job.slot),
        "idempotency_key": redactor.text(job.idempotency_key),
        "dedup_key": redactor.text(job.dedup_key),
        "parent_id": None if job.parent_id is None else str(job.parent_id),
        "tags": sorted(redactor.text(tag) or "" for tag in job.tags),
        "metadata": redactor.value(dict(job.metadata)),
        "progress": _progress_json(job.progress, redactor),
    }


def full_json(record: JobRecord, job: Job[Any], redactor: Redactor) -> dict[str, Any]:
    """Return everything about a job, for programs."""
    return {
        **job_json(job, redactor),
        "timeout": None if record.timeout is None else record.timeout / 1_000_000,
        "version": record.version,
        "worker": record.worker,
        "started_at": iso(record.started_at),
        "lease_until": iso(record.lease_until),
        "cancel_asked": record.is_cancel_asked,
        "attempts": [_attempt_json(attempt, redactor) for attempt in job.attempts],
        "arguments": arguments_json(record, redactor),
        "result": result_json(record, redactor),
    }


def logs_json(attempt: Attempt, redactor: Redactor) -> dict[str, Any]:
    """Return the log lines of an attempt, for programs."""
    lines = (redactor.text(attempt.log) or "").splitlines()
    return {"attempt": attempt.number, "outcome": attempt.outcome, "lines": lines}


def _progress_json(progress: Progress | None, redactor: Redactor) -> dict[str, Any] | None:
    if progress is None:
        return None
    return {"fraction": progress.fraction, "note": redactor.text(progress.note)}


def arguments_json(record: JobRecord, redactor: Redactor) -> Any:
    """Return a job's arguments as JSON values; None if they are no longer stored."""
    if not record.payload:
        return None  # erased with its tenant
    try:
        return redactor.value(decode_arguments(record.payload, enums=NO_ENUMS, is_showing=True))
    except Undecodable:
        return _as_written(record.payload, "arguments", redactor)


def result_json(record: JobRecord, redactor: Redactor) -> Any:
    """Return a job's result as JSON values; None if there is none."""
    if not record.result:
        return None
    try:
        return redactor.value(decode_result(record.result, enums=NO_ENUMS, is_showing=True))
    except Undecodable:
        return _as_written(record.result, "result", redactor)


def _as_written(stored: bytes, key: str, redactor: Redactor) -> Any:
    """Return the stored JSON itself: it holds a value that cannot be decoded."""
    try:
        return redactor.value(msgspec.json.decode(stored)[key])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return _NOT_READABLE


def _attempt_json(attempt: Attempt, redactor: Redactor) -> Mapping[str, Any]:
    return {
        "number": attempt.number,
        "worker": attempt.worker,
        "started_at": iso(attempt.started_at),
        "ended_at": iso(attempt.ended_at),
        "outcome": attempt.outcome,
        "error_class": attempt.error_class,
        "error_type": attempt.error_type,
        "message": redactor.text(attempt.message),
        "traceback": redactor.text(attempt.traceback),
        "log": redactor.text(attempt.log),
    }
