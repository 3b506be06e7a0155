"""Walk dead letters, the latest death first, by the index that suits the filters best.

A tenant's letters come from its own index: how long a call takes, and how many letters it has looked at, says
nothing about other tenants.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias
from uuid import UUID

from fairlane.store.contract.dead import DeadFiltered
from fairlane.store.contract.request import JobPosition, from_cursor, to_cursor
from fairlane.store.sqlite.query import all_rows
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.columns import LETTER_FILTERS
from fairlane.store.sqlite.transaction import Transaction

_SQL: Final = load("dead")

Position: TypeAlias = tuple[int, bytes]
"""The time of death, and the id of the job."""

_LOWEST: Final[Position] = (-1, b"")
_HIGHEST: Final[Position] = (2**63 - 1, b"\xff" * 17)


class LetterWalk:
    """The letters that one call may look at."""

    def __init__(self, request: DeadFiltered, cursor: str | None) -> None:
        """Begin at the cursor, or with the latest death; a foreign cursor raises ValueError."""
        place = None if cursor is None else from_cursor(cursor)
        top = _HIGHEST if place is None else (place.enqueued_at, place.id.bytes)
        if request.until is not None:
            top = min(top, (request.until, b""))
        known = {name: getattr(request, name) for name in LETTER_FILTERS if name != "tenant"}
        self._filters = {**known, "tenant": request.scope.tenant}
        self._index, self._walk = _index(self._filters)
        self._top = top
        self._bottom = _LOWEST if request.since is None else (request.since, b"")

    def stop_after(self, tx: Transaction, most: int) -> str | None:
        """Look at no more than `most` letters; return the cursor for the rest, None if there is none."""
        found = self.rows(tx, _SQL.edge, limit=most - 1)
        if len(found) < 2:  # noqa: PLR2004 (the last one and the one after it)
            return None
        self._bottom = found[0]
        return cursor_after(*self._bottom)

    def length(self, tx: Transaction) -> int:
        """Return how many letters there are, matching or not."""
        ((number,),) = self.rows(tx, _SQL.length)
        return int(number)

    def rows(self, tx: Transaction, statement: str, **more: int) -> list[tuple[Any, ...]]:
        """Return the rows of a statement of `dead.sql`."""
        statement = statement.replace("{index}", self._index).replace("{walk}", self._walk)
        (top, top_id), (bottom, bottom_id) = self._top, self._bottom
        place = {"top": top, "top_id": top_id, "bottom": bottom, "bottom_id": bottom_id}
        return all_rows(tx.db, statement, {**self._filters, **place, **more})


def cursor_after(settled_at: int, id: bytes) -> str:
    """Return the cursor behind a letter."""
    return to_cursor(JobPosition(settled_at, UUID(bytes=id)))


def _index(filters: dict[str, Any]) -> tuple[str, str]:
    """Return the index to walk, and the condition that it answers."""
    for name in ("tenant", "fingerprint", "review"):
        if filters[name] is not None:
            return f"letter_{name}", f"letter.{name} = :{name}"
    return "letter_settled", "true"
