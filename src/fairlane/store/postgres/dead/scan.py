"""Choose the index that a scan of dead letters reads, latest death first, and the values of its filters."""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from uuid import UUID

from fairlane.model.instants import Instant
from fairlane.store.contract.dead import DeadFiltered
from fairlane.store.contract.request import from_cursor

_LOWEST: Final = UUID(int=0)


class Position(NamedTuple):
    """A position in the order of deaths."""

    settled_at: Instant
    id: UUID


_TOP: Final = Position(2**63 - 1, UUID(int=2**128 - 1))


def start_of(request: DeadFiltered, cursor: str | None) -> Position:
    """Return the position below which to read."""
    start = _TOP
    if cursor is not None:
        found = from_cursor(cursor)
        start = Position(found.enqueued_at, found.id)
    return start if request.until is None else min(start, Position(max(request.until, 0), _LOWEST))


def scan_of(sql: Any, request: DeadFiltered, text: str, columns: str) -> str:
    """Return a statement over a chunk of letters, with these columns, from the narrowest index.

    Under the scope of a tenant that is the tenant's own, whatever else is asked for: so nothing depends on
    how many letters others have.
    """
    chunk = sql.chunk
    if request.scope.tenant is not None:
        chunk = sql.chunk_of_tenant
    elif request.fingerprint is not None:
        chunk = sql.chunk_of_fingerprint
    elif request.review is not None:
        chunk = sql.chunk_of_review
    text = text.replace("{chunk}", chunk).replace("{matches}", sql.matches)
    return text.replace("{columns}", columns)


def values_of(request: DeadFiltered, top: Position, rows: int) -> tuple[Any, ...]:
    """Return the values of a scan that reads `rows` rows below a position."""
    return (
        *top,
        rows,
        request.scope.tenant,
        request.queue,
        request.task,
        None if request.error_class is None else request.error_class.value,
        request.fingerprint,
        request.review,
        request.is_acknowledged,
        max(request.since or 0, 0),
    )
