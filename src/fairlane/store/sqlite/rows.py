"""Turn rows into records and records into rows. The order of columns is said here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.job import AttemptRecord, JobRecord, NewJob, Progress, Settlement
from fairlane.model.lifecycle import State
from fairlane.model.moves import ended

Row: TypeAlias = Sequence[Any]

BODY_COLUMNS: Final = (
    "seq",
    "id",
    "tenant",
    "queue",
    "task",
    "payload",
    "checksum",
    "version",
    "priority",
    "enqueued_at",
    "expires_at",
    "idempotency_key",
    "dedup_key",
    "dedup_until",
    "correlation_id",
    "parent_id",
    "max_attempts",
    "timeout",
    "at_most_once",
    "tags",
    "metadata",
    "created_by",
)
STATUS_COLUMNS: Final = (
    "state",
    "because",
    "run_at",
    "sort_key",
    "attempt",
    "failures",
    "crashes",
    "crashes_alone",
    "snoozes",
    "is_suspect",
    "fence",
    "settled_at",
    "result",
    "attempts",
)
LIVE_COLUMNS: Final = (
    *STATUS_COLUMNS,
    "worker",
    "started_at",
    "lease_until",
    "is_cancel_asked",
    "progress",
)
BODY_WIDTH: Final = len(BODY_COLUMNS)
STATUS_WIDTH: Final = len(STATUS_COLUMNS)
LIVE_WIDTH: Final = len(LIVE_COLUMNS)

IDEMPOTENCY_KEY: Final = BODY_COLUMNS.index("idempotency_key")
DEDUP_KEY: Final = BODY_COLUMNS.index("dedup_key")
EXPIRES_AT: Final = BODY_COLUMNS.index("expires_at")
SORT_KEY: Final = BODY_WIDTH + STATUS_COLUMNS.index("sort_key")
"""Where these stand in a body joined with its row in a home."""

_STATES: Final = {state.value: state for state in State}
_UNCLAIMED: Final = (None, None, None, 0, None)

_pack = msgspec.msgpack.Encoder().encode
_unpack_attempts = msgspec.msgpack.Decoder(tuple[AttemptRecord, ...]).decode
_unpack_progress = msgspec.msgpack.Decoder(Progress).decode
unpack_tags = msgspec.msgpack.Decoder(tuple[str, ...]).decode
_unpack_id = msgspec.msgpack.Decoder(UUID).decode
_ID_AHEAD: Final = b"\xc4\x10"
"""What msgpack writes before 16 bytes. Read so, a UUID costs a fifth of `UUID(bytes=…)`; its text, by
`to_builtins`, a third of `str`."""

to_text: Callable[[UUID], str] = msgspec.to_builtins


def to_record(body: Row, status: Row) -> JobRecord:
    """Join a body and its row in a home; a home other than `live` has no claim columns."""
    (
        _,
        id,
        tenant,
        queue,
        task,
        payload,
        checksum,
        version,
        priority,
        enqueued_at,
        expires_at,
        idempotency_key,
        dedup_key,
        dedup_until,
        correlation_id,
        parent_id,
        max_attempts,
        timeout,
        at_most_once,
        tags,
        metadata,
        created_by,
    ) = body
    (
        state,
        because,
        run_at,
        sort_key,
        attempt,
        failures,
        crashes,
        crashes_alone,
        snoozes,
        is_suspect,
        fence,
        settled_at,
        result,
        attempts,
    ) = status[:STATUS_WIDTH]
    worker, started_at, lease_until, asked, progress = status[STATUS_WIDTH:LIVE_WIDTH] or _UNCLAIMED
    uuid = _unpack_id(_ID_AHEAD + id)
    own = to_text(uuid) if idempotency_key is None or correlation_id is None else ""
    return JobRecord(
        id=uuid,
        tenant=tenant,
        queue=queue,
        task=task,
        state=_STATES[state],
        because=because,
        payload=payload,
        checksum=checksum,
        version=version,
        priority=priority,
        enqueued_at=enqueued_at,
        run_at=run_at,
        sort_key=sort_key,
        expires_at=expires_at,
        settled_at=settled_at,
        idempotency_key=own if idempotency_key is None else idempotency_key,
        dedup_key=dedup_key,
        dedup_until=dedup_until,
        correlation_id=own if correlation_id is None else correlation_id,
        parent_id=None if parent_id is None else UUID(bytes=parent_id),
        max_attempts=max_attempts,
        timeout=timeout,
        at_most_once=bool(at_most_once),
        tags=() if tags is None else unpack_tags(tags),
        metadata=metadata,
        created_by=created_by,
        attempt=attempt,
        failures=failures,
        crashes=crashes,
        crashes_alone=crashes_alone,
        snoozes=snoozes,
        is_suspect=bool(is_suspect),
        fence=fence,
        worker=worker,
        started_at=started_at,
        lease_until=lease_until,
        is_cancel_asked=bool(asked),
        progress=None if progress is None else _unpack_progress(progress),
        result=result,
        attempts=() if attempts is None else _unpack_attempts(attempts),
    )


def new_body(seq: int, id: bytes, new: NewJob, now: Instant, expires_at: Instant | None) -> tuple[Any, ...]:
    """Give the row of `body` for a job that comes in; what it was not given stays out."""
    return (
        seq,
        id,
        new.tenant,
        new.queue,
        new.task,
        new.payload,
        new.checksum,
        new.version,
        new.priority,
        now,
        expires_at,
        new.idempotency_key,
        new.dedup_key,
        new.dedup_until,
        new.correlation_id,
        None if new.parent_id is None else new.parent_id.bytes,
        new.max_attempts,
        new.timeout,
        new.at_most_once,
        _pack(new.tags) if new.tags else None,
        new.metadata,
        new.created_by,
    )


def to_body(seq: int, job: JobRecord) -> Row:
    """Give the row of `body`; generated keys and correlation ids cost nothing."""
    own = to_text(job.id)
    return (
        seq,
        job.id.bytes,
        job.tenant,
        job.queue,
        job.task,
        job.payload,
        job.checksum,
        job.version,
        job.priority,
        job.enqueued_at,
        job.expires_at,
        None if job.idempotency_key == own else job.idempotency_key,
        job.dedup_key,
        job.dedup_until,
        None if job.correlation_id == own else job.correlation_id,
        None if job.parent_id is None else job.parent_id.bytes,
        job.max_attempts,
        job.timeout,
        job.at_most_once,
        _pack(job.tags) if job.tags else None,
        job.metadata,
        job.created_by,
    )


def to_status(job: JobRecord) -> Row:
    """Give the columns that every home has."""
    return (
        job.state.value,
        job.because,
        job.run_at,
        job.sort_key,
        job.attempt,
        job.failures,
        job.crashes,
        job.crashes_alone,
        job.snoozes,
        job.is_suspect,
        job.fence,
        job.settled_at,
        job.result,
        _pack(job.attempts) if job.attempts else None,
    )


class Successes:
    """Rows of `history` for attempts that succeeded at one instant: what `moves.settled` says, in one go.

    Attempts that began and ended together have the same record, which is packed once.
    """

    def __init__(self, now: Instant) -> None:
        """Have packed nothing yet."""
        self._now = now
        self._packed: dict[tuple[int, Instant | None], bytes] = {}

    def row(self, seq: int, job: JobRecord, asked: Settlement) -> tuple[Any, ...]:
        """Give the row of a running job that has succeeded."""
        return (
            seq,
            State.SUCCEEDED,
            asked.because,
            job.run_at,
            job.sort_key,
            job.attempt,
            asked.failures,
            asked.crashes,
            asked.crashes_alone,
            asked.snoozes,
            asked.is_suspect,
            job.fence,
            self._now,
            asked.result,
            self._attempts(job, asked),
        )

    def _attempts(self, job: JobRecord, asked: Settlement) -> bytes:
        if job.attempts or asked.log is not None or asked.failure is not None:
            return _pack(ended(job, asked.outcome, asked.failure, asked.log, self._now))
        alike = (job.attempt, job.started_at)  # all are of one worker
        found = self._packed.get(alike)
        if found is None:
            found = _pack(ended(job, asked.outcome, None, None, self._now))
            self._packed[alike] = found
        return found


def to_claim(job: JobRecord) -> Row:
    """Give the columns of `live` that speak of a live claim."""
    progress = None if job.progress is None else _pack(job.progress)
    return (job.worker, job.started_at, job.lease_until, job.is_cancel_asked, progress)
