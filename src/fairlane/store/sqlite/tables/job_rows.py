"""Turn rows of the job tables into records and back. Runs no statement; the columns are in `columns`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter, itemgetter
from typing import Any, Final, TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.job import AttemptRecord, JobRecord, NewJob, Progress, Settlement
from fairlane.model.lifecycle.record_changes import ended
from fairlane.model.lifecycle.states import State
from fairlane.store.sqlite.tables.columns import (
    ATTEMPT_COLUMNS,
    BODY_COLUMNS,
    EDITABLE_COLUMNS,
    LIVE_COLUMNS,
    NAME_COLUMNS,
    PLAIN_COLUMNS,
    SETTLEMENT_COLUMNS,
    STATUS_COLUMNS,
)

Row: TypeAlias = Sequence[Any]

BODY_WIDTH: Final = len(BODY_COLUMNS)
STATUS_WIDTH: Final = len(STATUS_COLUMNS)
LIVE_WIDTH: Final = len(LIVE_COLUMNS)

ID: Final = BODY_COLUMNS.index("id")
IDEMPOTENCY_KEY: Final = BODY_COLUMNS.index("idempotency_key")
DEDUP_KEY: Final = BODY_COLUMNS.index("dedup_key")
EXPIRES_AT: Final = BODY_COLUMNS.index("expires_at")
STATE: Final = BODY_WIDTH + STATUS_COLUMNS.index("state")
SORT_KEY: Final = BODY_WIDTH + STATUS_COLUMNS.index("sort_key")
"""Positions in a row of `body` joined with one of `live`, `history` or `dead`."""

# ── rows to records ───────────────────────────────────────────────────────────

_pack = msgspec.msgpack.Encoder().encode
_unpack_attempts = msgspec.msgpack.Decoder(tuple[AttemptRecord, ...]).decode
_unpack_progress = msgspec.msgpack.Decoder(Progress).decode
unpack_tags = msgspec.msgpack.Decoder(tuple[str, ...]).decode
_unpack_id = msgspec.msgpack.Decoder(UUID).decode
_ID_PREFIX: Final = b"\xc4\x10"
"""What msgpack writes before 16 bytes. Decoding a UUID this way costs a fifth of `UUID(bytes=…)`; its text by
`to_builtins` costs a third of `str`."""

to_text: Callable[[UUID], str] = msgspec.to_builtins

_STATES: Final = {state.value: state for state in State}
_UNCLAIMED: Final = (None, None, None, 0, None)

_FIELDS: Final = JobRecord.__struct_fields__
_in_order_of_fields = itemgetter(*((*BODY_COLUMNS, *LIVE_COLUMNS).index(name) for name in _FIELDS))
(
    _ID, _STATE, _KEY, _CORRELATION, _PARENT, _AT_MOST_ONCE, _TAGS, _IS_SUSPECT, _IS_CANCEL_ASKED, _PROGRESS,
    _ATTEMPTS,
) = map(
    _FIELDS.index,
    (
        "id", "state", "idempotency_key", "correlation_id", "parent_id", "at_most_once", "tags", "is_suspect",
        "is_cancel_asked", "progress", "attempts",
    ),
)  # fmt: skip
"""Positions of the fields that are stored in another form."""


def to_record(row: Row) -> JobRecord:
    """Return the record of a row of `body` joined with `live`; more columns may follow.

    The fields are passed by position: naming forty of them would double the cost.
    """
    fields = list(_in_order_of_fields(row))
    id = fields[_ID] = _unpack_id(_ID_PREFIX + fields[_ID])
    fields[_STATE] = _STATES[fields[_STATE]]
    if fields[_KEY] is None or fields[_CORRELATION] is None:
        own = to_text(id)
        if fields[_KEY] is None:
            fields[_KEY] = own
        if fields[_CORRELATION] is None:
            fields[_CORRELATION] = own
    if fields[_PARENT] is not None:
        fields[_PARENT] = UUID(bytes=fields[_PARENT])
    fields[_AT_MOST_ONCE] = bool(fields[_AT_MOST_ONCE])
    fields[_TAGS] = () if fields[_TAGS] is None else unpack_tags(fields[_TAGS])
    fields[_IS_SUSPECT] = bool(fields[_IS_SUSPECT])
    fields[_IS_CANCEL_ASKED] = bool(fields[_IS_CANCEL_ASKED])
    if fields[_PROGRESS] is not None:
        fields[_PROGRESS] = _unpack_progress(fields[_PROGRESS])
    fields[_ATTEMPTS] = () if fields[_ATTEMPTS] is None else _unpack_attempts(fields[_ATTEMPTS])
    return JobRecord(*fields)


def to_finished(body: Row, status: Row) -> JobRecord:
    """Return the record of a row of `body` and one of `history` or `dead`."""
    return to_record((*body, *status, *_UNCLAIMED))


# ── records to rows ───────────────────────────────────────────────────────────

_plain = attrgetter(*NAME_COLUMNS, *PLAIN_COLUMNS)
_plain_of_new = attrgetter("idempotency_key", "correlation_id", *NAME_COLUMNS, *PLAIN_COLUMNS)
_editable = itemgetter(*map(BODY_COLUMNS.index, EDITABLE_COLUMNS))
_status = attrgetter(*ATTEMPT_COLUMNS, *SETTLEMENT_COLUMNS)
_of_attempt = attrgetter(*ATTEMPT_COLUMNS)
_of_settlement = attrgetter(*SETTLEMENT_COLUMNS)


def new_body(seq: int, id: bytes, new: NewJob, now: Instant, expires_at: Instant | None) -> tuple[Any, ...]:
    """Return the row of `body` for a new job. Generated keys and ids are stored as NULL."""
    parent, tags = new.parent_id, new.tags
    first = (
        seq,
        id,
        now,
        expires_at,
        None if parent is None else parent.bytes,
        _pack(tags) if tags else None,
    )
    row: tuple[Any, ...] = first + _plain_of_new(new)
    return row


def editable(job: JobRecord) -> Row:
    """Return the columns of `body` that an edit or a scrub may change."""
    row: Row = _editable(body_of(0, job))
    return row


def body_of(seq: int, job: JobRecord) -> tuple[Any, ...]:
    """Return the row of `body` for a job that is known already."""
    own = to_text(job.id)
    return (
        seq,
        job.id.bytes,
        job.enqueued_at,
        job.expires_at,
        None if job.parent_id is None else job.parent_id.bytes,
        _pack(job.tags) if job.tags else None,
        None if job.idempotency_key == own else job.idempotency_key,
        None if job.correlation_id == own else job.correlation_id,
        *_plain(job),
    )


def to_status(job: JobRecord) -> Row:
    """Return the columns that `live`, `history` and `dead` share."""
    return (job.state.value, job.settled_at, _pack(job.attempts) if job.attempts else None, *_status(job))


def to_claim(job: JobRecord) -> Row:
    """Return the columns of `live` that describe a claim."""
    progress = None if job.progress is None else _pack(job.progress)
    return (job.worker, job.started_at, job.lease_until, job.is_cancel_asked, progress)


class SuccessRows:
    """Make rows of `history` for attempts that succeeded at one instant.

    They are equal to those of `record_changes.settled`. Attempts that began and ended together have equal
    records, which are packed once.
    """

    def __init__(self, now: Instant, attempts_kept: int) -> None:
        """Start with nothing packed."""
        self._now = now
        self._kept = attempts_kept
        self._packed: dict[tuple[int, Instant | None], bytes] = {}

    def row(self, seq: int, job: JobRecord, asked: Settlement) -> tuple[Any, ...]:
        """Return the row of a running job that succeeded."""
        first = (seq, State.SUCCEEDED, self._now, self._attempts(job, asked))
        row: tuple[Any, ...] = first + _of_attempt(job) + _of_settlement(asked)
        return row

    def _attempts(self, job: JobRecord, asked: Settlement) -> bytes:
        if job.attempts or asked.log is not None or asked.failure is not None:
            return _pack(ended(job, asked.outcome, asked.failure, asked.log, self._now, self._kept))
        attempt_key = (job.attempt, job.started_at)  # a request has one worker
        found = self._packed.get(attempt_key)
        if found is None:
            found = _pack(ended(job, asked.outcome, None, None, self._now))
            self._packed[attempt_key] = found
        return found
