"""Read one dead letter, and write what was decided about it. Decides nothing."""

from __future__ import annotations

from uuid import UUID

import msgspec

from fairlane.model.review import ReviewRecord, scrubbed_review
from fairlane.store.contract.dead import DeadLetter
from fairlane.store.contract.request import Request
from fairlane.store.sqlite.query import one_row
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.letter_rows import review_row, to_letter, to_review
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("dead")


class StoredLetter(msgspec.Struct, frozen=True):
    """A dead letter and the number of its job's body."""

    seq: int
    letter: DeadLetter


def find_letter(tx: Transaction, request: Request, id: UUID) -> StoredLetter | None:
    """Return a dead letter, unless it belongs to a tenant outside the scope of the request."""
    row = one_row(tx.db, _SQL.one, (id.bytes,))
    letter = None if row is None else to_letter(row)
    if row is None or letter is None or not request.scope.covers(letter.job.tenant):
        return None
    return StoredLetter(row[0], letter)


def write_review(tx: Transaction, seq: int, record: ReviewRecord) -> None:
    """Replace the review of a dead letter."""
    tx.write(_SQL.write_review, seq, *review_row(record))


def review_of(tx: Transaction, seq: int) -> ReviewRecord | None:
    """Return the review of a job, by the number of its body; None if it is not dead."""
    row = one_row(tx.db, _SQL.review_of, (seq,))
    return None if row is None else to_review(*row)


def scrub_letter(tx: Transaction, seq: int) -> None:
    """Erase what people wrote about a dead letter, and the fingerprint of its failure."""
    review = review_of(tx, seq)
    if review is not None:
        tx.write(_SQL.erase_fingerprint, seq)
        write_review(tx, seq, scrubbed_review(review))
