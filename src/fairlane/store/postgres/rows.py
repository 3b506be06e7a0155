"""Turn rows into records and records into values. The order of columns is said here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, TypeAlias
from uuid import UUID, SafeUUID

import msgspec

from fairlane.model.failure import Failure
from fairlane.model.job import AttemptOutcome, AttemptRecord, JobRecord, NewJob, Progress
from fairlane.model.lifecycle import State

Row: TypeAlias = Sequence[Any]

SENT_COLUMNS: Final = (
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
"""What a job was sent with, in every home."""

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
    "attempts",
)
"""What has become of it, in every home."""

CLAIM_COLUMNS: Final = ("worker", "started_at", "lease_until", "is_cancel_asked", "progress")
"""What speaks of a live claim, in `job`."""

END_COLUMNS: Final = ("settled_at", "result")
"""What speaks of the end, in `history` and `dead`."""

HOT_COLUMNS: Final = (*SENT_COLUMNS, *STATUS_COLUMNS, *CLAIM_COLUMNS)
FINISHED_COLUMNS: Final = (*SENT_COLUMNS, *STATUS_COLUMNS, *END_COLUMNS)
WHOLE_COLUMNS: Final = (*HOT_COLUMNS, *END_COLUMNS)
"""All that a record has, whichever home it is in; see `statements` for how each home fills it."""
COUNTED_COLUMNS: Final = (
    *("enqueued_at", "id", "tenant", "queue", "task", "state", "because"),
    *("correlation_id", "parent_id", "tags"),
)
"""What filters and counts look at, in every home."""
COMMON_WIDTH: Final = len(SENT_COLUMNS) + len(STATUS_COLUMNS)
HOT_WIDTH: Final = len(HOT_COLUMNS)
FINISHED_WIDTH: Final = len(FINISHED_COLUMNS)
WHOLE_WIDTH: Final = len(WHOLE_COLUMNS)

_new: Final = object.__new__
_set_int: Final = UUID.__dict__["int"].__set__
_set_is_safe: Final = UUID.__dict__["is_safe"].__set__
_UNKNOWN: Final = SafeUUID.unknown
_STATES: Final = {state.value: state for state in State}
_UNCLAIMED: Final = (None, None, None, False, None)
_NO_END: Final = (None, None)

_pack_progress = msgspec.msgpack.Encoder().encode
_unpack_progress = msgspec.msgpack.Decoder(Progress).decode
_write_attempt = msgspec.json.Encoder().encode
_read_attempt = msgspec.json.Decoder(AttemptRecord).decode
_write_tags = msgspec.json.Encoder().encode


class _Tail(msgspec.Struct, omit_defaults=True):
    """What the worker knows of an attempt that ends; the row knows the rest."""

    outcome: AttemptOutcome
    failure: Failure | None = None
    log: str | None = None


_write_tail = msgspec.json.Encoder().encode


def hot_record(row: Row) -> JobRecord:
    """Read a row that begins with `HOT_COLUMNS`."""
    return _record((*row[:HOT_WIDTH], *_NO_END))


def finished_record(row: Row) -> JobRecord:
    """Read a row that begins with `FINISHED_COLUMNS`."""
    return _record((*row[:COMMON_WIDTH], *_UNCLAIMED, *row[COMMON_WIDTH:FINISHED_WIDTH]))


def whole_record(row: Row) -> JobRecord:
    """Read a row that begins with `WHOLE_COLUMNS`, of whatever home."""
    return _record(row[:WHOLE_WIDTH])


def _record(values: Row) -> JobRecord:
    """Make a record of the values of `WHOLE_COLUMNS`."""
    (
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
        attempts,
        worker,
        started_at,
        lease_until,
        is_cancel_asked,
        progress,
        settled_at,
        result,
    ) = values
    own = str(id) if idempotency_key is None or correlation_id is None else ""
    return JobRecord(  # by place: forty names take longer than all the rest of reading a row
        plain_uuid(id),
        tenant,
        queue,
        task,
        _STATES[state],
        because,
        payload,
        checksum,
        version,
        priority,
        enqueued_at,
        run_at,
        sort_key,
        expires_at,
        settled_at,
        own if idempotency_key is None else idempotency_key,
        dedup_key,
        dedup_until,
        own if correlation_id is None else correlation_id,
        None if parent_id is None else plain_uuid(parent_id),
        max_attempts,
        timeout,
        at_most_once,
        tuple(tags) if tags else (),
        metadata,
        created_by,
        attempt,
        failures,
        crashes,
        crashes_alone,
        snoozes,
        is_suspect,
        fence,
        worker,
        started_at,
        lease_until,
        is_cancel_asked,
        None if progress is None else _unpack_progress(progress),
        result,
        tuple(map(_read_attempt, attempts)) if attempts else (),
    )


def plain_uuid(value: Any) -> UUID:
    """Give a UUID of Python's own; the driver's is a subclass that pickles and prints otherwise.

    Not by its constructor, whose checks take eight times as long, nor by `object.__setattr__`, which looks
    for each slot anew.
    """
    uuid = _new(UUID)
    _set_int(uuid, value.int)
    _set_is_safe(uuid, _UNKNOWN)
    return uuid


def attempts_value(job: JobRecord) -> list[str] | None:
    """Give a job's attempts as they are stored."""
    return [_write_attempt(attempt).decode() for attempt in job.attempts] or None


def attempt_tail(outcome: AttemptOutcome, failure: Failure | None, log: str | None) -> str:
    """Give the end of an attempt's record as it is stored, from its outcome on.

    >>> attempt_tail("succeeded", None, None)
    '"outcome":"succeeded"}'
    """
    if failure is None and log is None:
        return _wordless_tail(outcome)
    return _write_tail(_Tail(outcome, failure, log))[1:].decode()


@cache
def _wordless_tail(outcome: AttemptOutcome) -> str:
    return _write_tail(_Tail(outcome))[1:].decode()


def progress_value(progress: Progress | None) -> bytes | None:
    """Give a handler's progress as it is stored."""
    return None if progress is None else _pack_progress(progress)


def sent_values(jobs: Sequence[NewJob]) -> tuple[list[Any] | None, ...]:
    """Give the columns of new jobs, in the order in which `bring_in` and `enqueue` take them."""
    return (
        [new.id for new in jobs],
        once([new.tenant for new in jobs]),
        once([new.queue for new in jobs]),
        once([new.task for new in jobs]),
        [new.payload for new in jobs],
        [new.checksum for new in jobs],
        once([new.version for new in jobs]),
        once([new.priority for new in jobs]),
        if_any([new.run_at for new in jobs]),
        if_any([new.delay or None for new in jobs]),
        if_any([new.expires_at for new in jobs]),
        if_any([new.expires_in for new in jobs]),
        if_any([new.idempotency_key for new in jobs]),
        if_any([new.dedup_key for new in jobs]),
        once([new.dedup_until for new in jobs]),
        if_any([new.correlation_id for new in jobs]),
        if_any([new.parent_id for new in jobs]),
        once([new.max_attempts for new in jobs]),
        if_any([new.timeout for new in jobs]),
        once([new.at_most_once for new in jobs]),
        if_any([_write_tags(new.tags).decode() if new.tags else None for new in jobs]),
        once([new.metadata for new in jobs]),
        if_any([new.created_by for new in jobs]),
    )


def once(values: list[Any]) -> list[Any]:
    """Give a column that has one value throughout as that one: the driver takes long over each value.

    >>> once([5, 5, 5]), once([5, 6])
    ([5], [5, 6])
    """
    return values[:1] if values.count(next(iter(values), None)) == len(values) else values


def if_any(values: list[Any]) -> list[Any] | None:
    """Give a column, or None where it says nothing.

    >>> if_any([None, None]), if_any([None, 7])
    (None, [None, 7])
    """
    return None if values.count(None) == len(values) else values
