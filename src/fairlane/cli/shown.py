"""A job as the command shows it: in a row, in full, as JSON; redacted unless asked for in clear (S6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from fairlane import Attempt, Job, Progress
from fairlane.cli.moments import ago, iso, moment, span
from fairlane.cli.output import Cell, View
from fairlane.cli.safe import cut
from fairlane.model.enums import NO_ENUMS
from fairlane.model.instants import Instant, to_instant
from fairlane.model.job import JobRecord
from fairlane.model.payload import decode_arguments, decode_result
from fairlane.model.reading import Undecodable
from fairlane.model.sensitive import redact, redact_text

_BECAUSE_CHARS: Final = 60
_NOT_READABLE: Final = "cannot be read"


class Veil:
    """What may be seen: all of it if that was asked for, else what does not look secret.

    >>> Veil(is_lifted=False).text("password=hunter2 at host"), Veil(is_lifted=True).value({"pin": 1})
    ('password=[redacted] at host', {'pin': 1})
    """

    def __init__(self, *, is_lifted: bool, names: Iterable[str] = ()) -> None:
        self._is_lifted = is_lifted
        self._names = tuple(names)

    def text(self, text: str | None) -> str | None:
        """Show a text that may hold secrets among other words."""
        return text if text is None or self._is_lifted else redact_text(text, names=self._names)

    def value(self, value: Any) -> Any:
        """Show a value of any shape."""
        return value if self._is_lifted else redact(value, names=self._names)


CLOSED: Final = Veil(is_lifted=False)


def jobs_view(now: Instant) -> View[Job[Any]]:
    """Show jobs in rows, their times as seen from now."""
    return View(
        {
            "ID": lambda job: str(job.id),
            "STATE": _state,
            "TENANT": lambda job: job.tenant,
            "QUEUE": lambda job: job.queue,
            "TASK": lambda job: job.task,
            "ATTEMPT": lambda job: f"{job.attempt}/{job.max_attempts}",
            "ENQUEUED": lambda job: ago(to_instant(job.enqueued_at), now),
            "BECAUSE": lambda job: cut(CLOSED.text(job.because) or "", _BECAUSE_CHARS),
        },
        job_json,
    )


def job_json(job: Job[Any], veil: Veil = CLOSED) -> dict[str, Any]:
    """Give what is public of a job, for programs."""
    return {
        "id": str(job.id),
        "tenant": job.tenant,
        "queue": job.queue,
        "task": job.task,
        "state": job.state.value,
        "because": veil.text(job.because),
        "created": job.created,
        "priority": job.priority,
        "attempt": job.attempt,
        "failures": job.failures,
        "max_attempts": job.max_attempts,
        "enqueued_at": iso(job.enqueued_at),
        "run_at": iso(job.run_at),
        "expires_at": iso(job.expires_at),
        "settled_at": iso(job.settled_at),
        "correlation_id": veil.text(job.correlation_id),
        "idempotency_key": veil.text(job.idempotency_key),
        "dedup_key": veil.text(job.dedup_key),
        "parent_id": None if job.parent_id is None else str(job.parent_id),
        "tags": sorted(veil.text(tag) or "" for tag in job.tags),
        "metadata": veil.value(dict(job.metadata)),
        "progress": _progress_json(job.progress, veil),
    }


def full_json(record: JobRecord, job: Job[Any], veil: Veil) -> dict[str, Any]:
    """Give all that is known of a job, for programs."""
    return {
        **job_json(job, veil),
        "timeout": None if record.timeout is None else record.timeout / 1_000_000,
        "version": record.version,
        "worker": record.worker,
        "started_at": iso(record.started_at),
        "lease_until": iso(record.lease_until),
        "cancel_asked": record.is_cancel_asked,
        "attempts": [_attempt_json(attempt, veil) for attempt in job.attempts],
        "arguments": _arguments(record, veil),
        "result": _result(record, veil),
    }


def full_fields(record: JobRecord, job: Job[Any], veil: Veil, now: Instant) -> dict[str, Cell]:
    """Give all that is known of a job, for people."""

    def at(instant: Instant | None) -> str | None:
        return None if instant is None else moment(instant, now)

    said = job_json(job, veil)
    return {
        "id": str(job.id),
        "state": job.state.value + (", asked to stop" if record.is_cancel_asked else ""),
        "because": said["because"],
        "task": f"{job.task} (version {record.version})",
        "tenant": job.tenant,
        "queue": job.queue,
        "priority": job.priority,
        "attempt": f"{job.attempt} of {job.max_attempts}, {job.failures} failed",
        "enqueued": at(record.enqueued_at),
        "due": at(record.run_at),
        "expires": at(record.expires_at),
        "settled": at(record.settled_at),
        "timeout": "none" if record.timeout is None else span(record.timeout),
        "worker": record.worker,
        "lease until": at(record.lease_until),
        "progress": _progress(job.progress, veil),
        "correlation": None if job.correlation_id == str(job.id) else said["correlation_id"],
        "key": None if job.idempotency_key == str(job.id) else said["idempotency_key"],
        "dedup key": said["dedup_key"],
        "parent": said["parent_id"],
        "tags": ", ".join(said["tags"]),
        "metadata": _json_text(said["metadata"]) if said["metadata"] else None,
        "arguments": _json_text(_arguments(record, veil)),
        "result": "no longer kept" if record.result == b"" else _result_text(record, veil),
        "attempts": "\n".join(
            line for attempt in job.attempts for line in _attempt_lines(attempt, veil, now)
        ),
    }


def logs_json(attempt: Attempt, veil: Veil) -> dict[str, Any]:
    """Return the log lines of an attempt, for programs."""
    lines = (veil.text(attempt.log) or "").splitlines()
    return {"attempt": attempt.number, "outcome": attempt.outcome, "lines": lines}


def logs_text(attempts: Sequence[Attempt], veil: Veil) -> str:
    """Return the log lines of these attempts, for people."""
    lines: list[str] = []
    for attempt in attempts:
        lines += [f"attempt {attempt.number}, {attempt.outcome}:", veil.text(attempt.log) or _no_log(attempt)]
    return "\n".join(lines) or "It has not been started."


def _no_log(attempt: Attempt) -> str:
    is_running = attempt.ended_at is None
    return "  its lines are stored when it ends" if is_running else "  nothing was logged"


def _state(job: Job[Any]) -> str:
    return job.state.value if job.progress is None else f"{job.state.value} {job.progress.fraction:.0%}"


def _progress_json(progress: Progress | None, veil: Veil) -> dict[str, Any] | None:
    if progress is None:
        return None
    return {"fraction": progress.fraction, "note": veil.text(progress.note)}


def _progress(progress: Progress | None, veil: Veil) -> str | None:
    return None if progress is None else f"{progress.fraction:.0%} {veil.text(progress.note)}".strip()


def _arguments(record: JobRecord, veil: Veil) -> Any:
    if not record.payload:
        return None  # erased with its tenant
    try:
        return veil.value(decode_arguments(record.payload, enums=NO_ENUMS, is_showing=True))
    except Undecodable:
        return _as_written(record.payload, "arguments", veil)


def _result(record: JobRecord, veil: Veil) -> Any:
    if not record.result:
        return None
    try:
        return veil.value(decode_result(record.result, enums=NO_ENUMS, is_showing=True))
    except Undecodable:
        return _as_written(record.result, "result", veil)


def _result_text(record: JobRecord, veil: Veil) -> str | None:
    return None if record.result is None else _json_text(_result(record, veil))


def _as_written(stored: bytes, key: str, veil: Veil) -> Any:
    """Show the JSON itself: it holds something that nobody can read."""
    try:
        return veil.value(msgspec.json.decode(stored)[key])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return _NOT_READABLE


def _json_text(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str, order="sorted").decode()


def _attempt_json(attempt: Attempt, veil: Veil) -> Mapping[str, Any]:
    return {
        "number": attempt.number,
        "worker": attempt.worker,
        "started_at": iso(attempt.started_at),
        "ended_at": iso(attempt.ended_at),
        "outcome": attempt.outcome,
        "error_class": attempt.error_class,
        "error_type": attempt.error_type,
        "message": veil.text(attempt.message),
        "traceback": veil.text(attempt.traceback),
        "log": veil.text(attempt.log),
    }


def _attempt_lines(attempt: Attempt, veil: Veil, now: Instant) -> Iterator[str]:
    started_at = to_instant(attempt.started_at)
    took = "" if attempt.ended_at is None else f", took {span(to_instant(attempt.ended_at) - started_at)}"
    yield f"{attempt.number} {attempt.outcome} on {attempt.worker}, started {moment(started_at, now)}{took}"
    if attempt.error_type is not None:
        kind = "" if attempt.error_class is None else f" ({attempt.error_class.value})"
        yield f"  {attempt.error_type}{kind}: {veil.text(attempt.message)}"
