"""Read dead letters from rows, lock those about which something is decided, and write what was decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import msgspec

from fairlane.model.failure import ErrorClass
from fairlane.model.review import ReviewRecord
from fairlane.store.contract.dead import DeadLetter
from fairlane.store.contract.request import Request
from fairlane.store.postgres.connection import Connection
from fairlane.store.postgres.rows import read_record
from fairlane.store.postgres.statements import load

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(ReviewRecord).decode


def read_letter(row: Any) -> DeadLetter:
    """Read a row that begins with a record and has the columns of a letter."""
    error_class = None if row["error_class"] is None else ErrorClass(row["error_class"])
    record = row["review_record"]
    review = ReviewRecord(row["review"]) if record is None else _unpack(record)
    return DeadLetter(read_record(row), error_class, row["fingerprint"], review)


async def locked_letters(
    connection: Connection, schema: str, request: Request, ids: Iterable[UUID], *, waits: bool = True
) -> dict[UUID, DeadLetter]:
    """Lock those of these letters that the scope reaches, until the end of the transaction.

    Their jobs come without payload, result and attempts. Without `waits`, letters that somebody else has
    locked are left out.
    """
    sql = load("dead", schema)
    statement = sql.locked if waits else sql.locked_if_free
    rows = await connection.fetch(statement, sorted(set(ids)), request.scope.tenant)
    return {letter.job.id: letter for letter in map(read_letter, rows)}


async def write_reviews(connection: Connection, schema: str, reviews: Mapping[UUID, ReviewRecord]) -> None:
    """Write the reviews of letters that the caller has locked."""
    if reviews:
        rows = [(id, *_columns(record)) for id, record in reviews.items()]
        await connection.fetch(load("dead", schema).write, *map(list, zip(*rows, strict=True)))


def _columns(record: ReviewRecord) -> tuple[Any, ...]:
    """Return the columns of a review, from `review` on; all but the first two only serve to be looked for."""
    run = record.new_run
    return (
        record.review,
        _pack(record),
        record.acknowledged is not None,
        bool(record.notes),
        None if record.decided is None else record.decided.at,
        run.job if run is not None and run.is_open else None,
    )
