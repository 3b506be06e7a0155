"""What a writer still knows from its last transactions. True until somebody else writes to the file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

KEPT_MOST: Final = 25_000
"""How many stay in memory."""


class Kept(Generic[K, V]):
    """Rows by name; None says that there is none of that name."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._rows: dict[K, V | None] = {}

    def keep(self, rows: dict[K, V | None]) -> None:
        """Keep what was committed; it replaces what was known before."""
        if len(self._rows) > KEPT_MOST:
            self._rows.clear()
        self._rows |= rows

    def recall(self, names: Iterable[K]) -> dict[K, V | None]:
        """Give what is known of these."""
        return {name: self._rows[name] for name in names if name in self._rows}

    def forget(self) -> None:
        """Know nothing any more."""
        self._rows.clear()
