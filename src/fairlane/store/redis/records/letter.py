"""What the store notes of a dead letter beside its job: a record that filters compare, and its review.

All letters that are alike to a filter, but for the time of death, have the same record: a script looks at
each record once, and counts by it.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple, get_args

import msgspec

from fairlane.model.failure import ErrorClass
from fairlane.model.job import JobRecord
from fairlane.model.journal.facts import last_failure
from fairlane.model.review import Review, ReviewRecord
from fairlane.store.contract.dead import DeadLetter
from fairlane.store.redis.records.job import pack
from fairlane.store.redis.records.layout import RecordLayout, lua_format

REVIEWS: Final[dict[Review, int]] = {review: number for number, review in enumerate(get_args(Review), 1)}
_BY_NUMBER: Final = {number: review for review, number in REVIEWS.items()}

OTHER_REVIEWS: Final[tuple[Review, ...]] = get_args(Review)[1:]
"""All but the first, pending: of these the letters are counted."""

LETTER_LAYOUT: Final = RecordLayout(
    "LETTER",
    "LETTER",
    {
        "review": "B",
        "is_acknowledged": "?",
        "error_class": "s",  # "": none
        "fingerprint": "s",  # "": none
        "tenant": "s",
        "queue": "s",
        "task": "s",
    },
)
"""A dead letter as filters see it."""

_CHANGE: Final = Struct(">q16s")

LETTER_CONSTANTS: Final[dict[str, int | str]] = {
    **LETTER_LAYOUT.constants,
    "LETTER_CHANGE_FORMAT": lua_format(("q", "16s")),
    "LETTER_IS_PENDING": REVIEWS["pending"],
    "LETTER_IS_REPROCESSED": REVIEWS["reprocessed"],
    "LETTER_COUNTS_FORMAT": lua_format(["I"] * len(OTHER_REVIEWS)),
    "LETTER_COUNTS": len(OTHER_REVIEWS),
}

_NO_ID: Final = bytes(16)
_read_review = msgspec.msgpack.Decoder(ReviewRecord).decode
_read_counts: Final = Struct(f">{'I' * len(OTHER_REVIEWS)}").unpack


class LetterRecord(NamedTuple):
    """What letters have in common."""

    review: Review
    is_acknowledged: bool
    error_class: ErrorClass | None
    fingerprint: str
    tenant: str
    queue: str
    task: str


def read_review(stored: bytes) -> ReviewRecord:
    """Decode a review; empty bytes are one of which nobody has done anything."""
    return _read_review(stored) if stored else ReviewRecord()


def write_review(record: ReviewRecord) -> bytes:
    """Encode a review."""
    return b"" if record == ReviewRecord() else pack(record)


def to_dead_letter(job: JobRecord, record: ReviewRecord) -> DeadLetter:
    """Return a dead job as the contract has it."""
    failure = last_failure(job)
    if failure is None:
        return DeadLetter(job, None, "", record)
    return DeadLetter(job, failure.error_class, failure.fingerprint, record)


def write_letter(job: JobRecord, record: ReviewRecord) -> bytes:
    """Pack the record of a dead letter, the fields of LETTER_LAYOUT in their order."""
    letter = to_dead_letter(job, record)
    error_class = "" if letter.error_class is None else letter.error_class.value
    numbers = LETTER_LAYOUT.pack_numbers(REVIEWS[record.review], record.acknowledged is not None)
    texts = f"{error_class}\0{letter.fingerprint}\0{job.tenant}\0{job.queue}\0{job.task}\0"
    return numbers + texts.encode()


def read_letter(stored: bytes) -> LetterRecord:
    """Unpack the record of a dead letter."""
    review, is_acknowledged = stored[0], bool(stored[1])
    error_class, *texts, _ = stored[2:].decode().split("\0")
    return LetterRecord(
        _BY_NUMBER[review], is_acknowledged, ErrorClass(error_class) if error_class else None, *texts
    )


def write_change(job: JobRecord, record: ReviewRecord) -> bytes:
    """Pack what a letter has become, as `lib/dead/letters.lua` reads it.

    When its end was decided (0: it was not), the job in its place while its end is unknown, and
    the record that filters compare.
    """
    is_ended = record.review in {"resolved", "ignored", "discarded"}
    decided_at = record.decided.at if is_ended and record.decided is not None else 0
    run = record.new_run
    run_id = run.job.bytes if run is not None and run.is_open else _NO_ID
    return _CHANGE.pack(decided_at, run_id) + write_letter(job, record)


def read_counts(stored: bytes) -> dict[Review, int]:
    """Unpack how many letters of a tenant queue have each review but the first."""
    return dict(zip(OTHER_REVIEWS, _read_counts(stored), strict=True))
