"""Render a job: as a table row, in full, as JSON. Secrets are redacted unless revealed (S6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from fairlane import Attempt, Job, Progress
from fairlane.cli.render.escaping import cut
from fairlane.cli.render.output import Cell, View
from fairlane.cli.render.times import ago, format_duration, iso, timestamp_and_age
from fairlane.model.instants import Instant, to_instant
from fairlane.model.job import JobRecord
from fairlane.model.payload.encoding import decode_arguments, decode_result
from fairlane.model.payload.enums import NO_ENUMS
from fairlane.model.payload.reading import Undecodable
from fairlane.model.payload.sensitive import redact, redact_text

_BECAUSE_CHARS: Final = 60
_NOT_READABLE: Final = "cannot be read"


class Redactor:
    """Redacts what looks secret, unless the user asked to reveal it.

    >>> Redactor(reveals=False).text("password=hunter2 at host"), Redactor(reveals=True).value({"pin": 1})
    ('password=[redacted] at host', {'pin': 1})
    """

    def __init__(self, *, reveals: bool, names: Iterable[str] = ()) -> None:
        self._reveals = reveals
        self._names = tuple(names)

    def text(self, text: str | None) -> str | None:
        """Redact the secrets in a text."""
        return text if text is None or self._reveals else redact_text(text, names=self._names)

    def value(self, value: Any) -> Any:
        """Redact the secrets in a value of any shape."""
        return value if self._reveals else redact(value, names=self._names)


REDACTED: Final = Redactor(reveals=False)


def jobs_view(now: Instant) -> View[Job[Any]]:
    """Return the table of jobs, with times relative to `now`."""
    return View(
        {
            "ID": lambda job: str(job.id),
            "STATE": _state,
            "TENANT": lambda job: job.tenant,
            "QUEUE": lambda job: job.queue,
            "TASK": lambda job: job.task,
            "ATTEMPT": lambda job: f"{job.attempt}/{job.max_attempts}",
            "ENQUEUED": lambda job: ago(to_instant(job.enqueued_at), now),
            "BECAUSE": lambda job: cut(REDACTED.text(job.because) or "", _BECAUSE_CHARS),
        },
        job_json,
    )


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
        "arguments": _arguments(record, redactor),
        "result": _result(record, redactor),
    }


def full_fields(record: JobRecord, job: Job[Any], redactor: Redactor, now: Instant) -> dict[str, Cell]:
    """Return everything about a job, for people."""

    def at(instant: Instant | None) -> str | None:
        return None if instant is None else timestamp_and_age(instant, now)

    public = job_json(job, redactor)
    return {
        "id": str(job.id),
        "state": job.state.value + (", asked to stop" if record.is_cancel_asked else ""),
        "because": public["because"],
        "task": f"{job.task} (version {record.version})",
        "tenant": job.tenant,
        "queue": job.queue,
        "priority": job.priority,
        "attempt": f"{job.attempt} of {job.max_attempts}, {job.failures} failed",
        "enqueued": at(record.enqueued_at),
        "due": at(record.run_at),
        "expires": at(record.expires_at),
        "settled": at(record.settled_at),
        "timeout": "none" if record.timeout is None else format_duration(record.timeout),
        "worker": record.worker,
        "lease until": at(record.lease_until),
        "progress": _progress(job.progress, redactor),
        "correlation": None if job.correlation_id == str(job.id) else public["correlation_id"],
        "created by": public["created_by"],
        "key": None if job.idempotency_key == str(job.id) else public["idempotency_key"],
        "dedup key": public["dedup_key"],
        "parent": public["parent_id"],
        "tags": ", ".join(public["tags"]),
        "metadata": _json_text(public["metadata"]) if public["metadata"] else None,
        "arguments": _json_text(_arguments(record, redactor)),
        "result": "no longer stored" if record.result == b"" else _result_text(record, redactor),
        "attempts": "\n".join(
            line for attempt in job.attempts for line in _attempt_lines(attempt, redactor, now)
        ),
    }


def logs_json(attempt: Attempt, redactor: Redactor) -> dict[str, Any]:
    """Return the log lines of an attempt, for programs."""
    lines = (redactor.text(attempt.log) or "").splitlines()
    return {"attempt": attempt.number, "outcome": attempt.outcome, "lines": lines}


def logs_text(attempts: Sequence[Attempt], redactor: Redactor) -> str:
    """Return the log lines of these attempts, for people."""
    lines: list[str] = []
    for attempt in attempts:
        lines += [
            f"attempt {attempt.number}, {attempt.outcome}:",
            redactor.text(attempt.log) or _no_log(attempt),
        ]
    return "\n".join(lines) or "The job has not started yet."


def _no_log(attempt: Attempt) -> str:
    is_running = attempt.ended_at is None
    return "  log lines are stored when the attempt ends" if is_running else "  nothing was logged"


def _state(job: Job[Any]) -> str:
    return job.state.value if job.progress is None else f"{job.state.value} {job.progress.fraction:.0%}"


def _progress_json(progress: Progress | None, redactor: Redactor) -> dict[str, Any] | None:
    if progress is None:
        return None
    return {"fraction": progress.fraction, "note": redactor.text(progress.note)}


def _progress(progress: Progress | None, redactor: Redactor) -> str | None:
    return None if progress is None else f"{progress.fraction:.0%} {redactor.text(progress.note)}".strip()


def _arguments(record: JobRecord, redactor: Redactor) -> Any:
    if not record.payload:
        return None  # erased with its tenant
    try:
        return redactor.value(decode_arguments(record.payload, enums=NO_ENUMS, is_showing=True))
    except Undecodable:
        return _as_written(record.payload, "arguments", redactor)


def _result(record: JobRecord, redactor: Redactor) -> Any:
    if not record.result:
        return None
    try:
        return redactor.value(decode_result(record.result, enums=NO_ENUMS, is_showing=True))
    except Undecodable:
        return _as_written(record.result, "result", redactor)


def _result_text(record: JobRecord, redactor: Redactor) -> str | None:
    return None if record.result is None else _json_text(_result(record, redactor))


def _as_written(stored: bytes, key: str, redactor: Redactor) -> Any:
    """Return the stored JSON itself: it holds a value that cannot be decoded."""
    try:
        return redactor.value(msgspec.json.decode(stored)[key])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return _NOT_READABLE


def _json_text(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str, order="sorted").decode()


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


def _attempt_lines(attempt: Attempt, redactor: Redactor, now: Instant) -> Iterator[str]:
    started_at = to_instant(attempt.started_at)
    took = (
        ""
        if attempt.ended_at is None
        else f", took {format_duration(to_instant(attempt.ended_at) - started_at)}"
    )
    started = timestamp_and_age(started_at, now)
    yield f"{attempt.number} {attempt.outcome} on {attempt.worker}, started {started}{took}"
    if attempt.error_type is not None:
        kind = "" if attempt.error_class is None else f" ({attempt.error_class.value})"
        yield f"  {attempt.error_type}{kind}: {redactor.text(attempt.message)}"
