"""Encode records of access as bytes, decode them, and decide about a change. Reads and writes no store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from fairlane.model.access_records import AccessKey, AccessRecord, AccessRow, live, next_row
from fairlane.model.instants import Instant
from fairlane.store.contract.access import AccessChange, AccessWriteRequest

pack_access: Final = msgspec.msgpack.Encoder().encode
read_access: Final = msgspec.msgpack.Decoder(AccessRecord).decode


def is_as_expected(change: AccessChange, row: AccessRow | None, now: Instant) -> bool:
    """Whether a record still has the revision that a change names."""
    current = live(row, now)
    return change.revision == (0 if current is None else current.revision)


def changed_row(change: AccessChange, row: AccessRow | None, now: Instant) -> AccessRow | None:
    """Return what is kept instead; None if the record is removed."""
    return None if change.record is None else next_row(row, change.record, now, change.valid_for)


def changed_records(
    request: AccessWriteRequest, rows: Mapping[AccessKey, AccessRow], now: Instant
) -> list[tuple[AccessRecord | None, AccessRecord | None]]:
    """Return each record as it was and as it is: for the audit."""
    kept = ((live(rows.get(one.key), now), one.record) for one in request.changes)
    return [(None if row is None else row.record, after) for row, after in kept]
