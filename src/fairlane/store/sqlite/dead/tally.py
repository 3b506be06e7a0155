"""Count what dead letters have in common: SQL groups them, so that only groups are read."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from fairlane.model.failure import ErrorClass
from fairlane.store.contract.dead import DeadTally, DeadTallyPage, DeadTallyRequest
from fairlane.store.contract.request import check_reading
from fairlane.store.sqlite.dead.walk import LetterWalk
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("dead")
_ID_DIGITS = 32


def tally(tx: Transaction, request: DeadTallyRequest) -> DeadTallyPage:
    """Return the tallies of the next letters, and a cursor if there are more."""
    check_reading(request.limit)
    walk = LetterWalk(request, request.cursor)
    rest = walk.stop_after(tx, request.limit)
    looked_at = walk.length(tx) if rest is None else request.limit
    return DeadTallyPage(tuple(_tally(*row) for row in walk.rows(tx, _SQL.tally)), looked_at, rest)


def _tally(
    fingerprint: str, error_class: str | None, tenant: str, queue: str, task: str, review: Any, *numbers: Any
) -> DeadTally:
    letters, first_at, last_at, last = numbers
    return DeadTally(
        fingerprint=fingerprint,
        error_class=None if error_class is None else ErrorClass(error_class),
        tenant=tenant,
        queue=queue,
        task=task,
        review=review,
        letters=letters,
        first_at=first_at,
        last_at=last_at,
        sample=UUID(last[-_ID_DIGITS:]),
    )
