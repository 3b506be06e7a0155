"""Turn rows of dead letters into records and back. Runs no statement; the columns are in `columns`."""

from __future__ import annotations

from typing import Final

import msgspec

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.journal.facts import last_failure
from fairlane.model.review import Review, ReviewRecord
from fairlane.store.contract.dead import DeadLetter
from fairlane.store.sqlite.tables.job_rows import BODY_WIDTH, STATUS_WIDTH, Row, to_finished

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(ReviewRecord).decode

_WIDTH: Final = BODY_WIDTH + STATUS_WIDTH


def to_letter(row: Row) -> DeadLetter:
    """Return the dead letter of a row of `body` joined with `dead` and `letter`; more columns may follow."""
    error_class, fingerprint, review, record = row[_WIDTH : _WIDTH + 4]
    job = to_finished(row[:BODY_WIDTH], row[BODY_WIDTH:_WIDTH])
    known = None if error_class is None else ErrorClass(error_class)
    return DeadLetter(job, known, fingerprint, to_review(review, record))


def to_review(review: Review, record: bytes | None) -> ReviewRecord:
    """Return the review of a row of `letter`; a letter about which nobody did anything has no record."""
    return ReviewRecord(review) if record is None else _unpack(record)


def new_letter(seq: int, job: JobRecord) -> Row:
    """Return the row of `letter` for a job that dies."""
    failure = last_failure(job)
    names = (job.tenant, job.queue, job.task)
    if failure is None:
        return (seq, job.id.bytes, job.settled_at, *names, None, "")
    return (seq, job.id.bytes, job.settled_at, *names, failure.error_class.value, failure.fingerprint)


def review_row(record: ReviewRecord) -> Row:
    """Return the columns of `letter` that a review changes."""
    run = record.new_run
    return (
        record.review,
        record.acknowledged is not None,
        len(record.notes),
        _decided_at(record),
        run.job.bytes if run is not None and run.is_open else None,
        _pack(record),
    )


def _decided_at(record: ReviewRecord) -> Instant | None:
    """Return when a letter was decided, if its retention may count from then (`Retention.dead_until`)."""
    if record.decided is None or record.review in {"pending", "reprocessed"}:
        return None
    return record.decided.at
