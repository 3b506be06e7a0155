"""Render a job: as a table row, in full, as JSON. Secrets are redacted unless revealed (S6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from fairlane import Attempt, Job, Progress
from fairlane.app.job_json import arguments_json, job_json, result_json
from fairlane.app.redaction import REDACTED, Redactor
from fairlane.cli.render.escaping import cut
from fairlane.cli.render.output import Cell, TableView
from fairlane.cli.render.times import timestamp, timestamp_and_age
from fairlane.model.durations import ago, format_duration
from fairlane.model.instants import Instant, iso, to_instant
from fairlane.model.job import JobRecord

_BECAUSE_CHARS: Final = 60


def jobs_view(now: Instant) -> TableView[Job[Any]]:
    """Return the table of jobs, with times relative to `now`."""
    return TableView(
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


def running_view(now: Instant) -> TableView[Job[Any]]:
    """Return the table of running jobs, with how long each has been running."""
    return TableView(
        {
            "ID": lambda job: str(job.id),
            "RUNNING FOR": lambda job: format_duration(now - to_instant(job.attempts[-1].started_at)),
            "TENANT": lambda job: job.tenant,
            "QUEUE": lambda job: job.queue,
            "TASK": lambda job: job.task,
            "ATTEMPT": lambda job: f"{job.attempt}/{job.max_attempts}",
            "WORKER": lambda job: job.attempts[-1].worker,
        },
        lambda job: {
            **job_json(job),
            "worker": job.attempts[-1].worker,
            "started_at": iso(job.attempts[-1].started_at),
        },
    )


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
        "created by": None if job.slot is not None else public["created_by"],
        "schedule": None if job.slot is None else f"{job.schedule}, slot {timestamp(to_instant(job.slot))}",
        "key": None if job.idempotency_key == str(job.id) else public["idempotency_key"],
        "dedup key": public["dedup_key"],
        "parent": public["parent_id"],
        "tags": ", ".join(public["tags"]),
        "metadata": _json_text(public["metadata"]) if public["metadata"] else None,
        "arguments": _json_text(arguments_json(record, redactor)),
        "result": "no longer stored" if record.result == b"" else _result_text(record, redactor),
        "attempts": "\n".join(
            line for attempt in job.attempts for line in _attempt_lines(attempt, redactor, now)
        ),
    }


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


def _progress(progress: Progress | None, redactor: Redactor) -> str | None:
    return None if progress is None else f"{progress.fraction:.0%} {redactor.text(progress.note)}".strip()


def _result_text(record: JobRecord, redactor: Redactor) -> str | None:
    return None if record.result is None else _json_text(result_json(record, redactor))


def _json_text(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str, order="sorted").decode()


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
