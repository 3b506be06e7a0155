"""What a writer still knows from its last transactions. True until somebody else writes to the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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

    @property
    def is_full(self) -> bool:
        """Whether it is time to forget."""
        return len(self._rows) > KEPT_MOST

    def keep(self, rows: Mapping[K, V | None]) -> None:
        """Keep what was committed; it replaces what was known before."""
        self._rows |= rows

    def recall(self, names: Iterable[K]) -> dict[K, V | None]:
        """Give what is known of these."""
        return {name: self._rows[name] for name in names if name in self._rows}

    def find(self, name: K) -> V | None:
        """Give what is known of one; None if nothing is, or if there is none."""
        return self._rows.get(name)

    def drop(self, name: K) -> None:
        """Know nothing any more of one."""
        self._rows.pop(name, None)

    def forget(self) -> None:
        """Know nothing any more."""
        self._rows.clear()
