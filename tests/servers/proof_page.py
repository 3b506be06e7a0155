"""A page of docs/proofs and the stored figures that it is made from. Measures nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)

_FOLDER: Final = Path(__file__).parents[2] / "docs" / "proofs"


class ProofPage(Generic[T]):
    """`NAME.json` has what was measured; `NAME.md` says it in words."""

    def __init__(self, name: str, figures: type[T], say: Callable[[T], str]) -> None:
        """Know the figures, and how to write them."""
        self._figures = figures
        self._say = say
        self._json = _FOLDER / f"{name}.json"
        self.path = _FOLDER / f"{name}.md"

    def keep(self, measured: T) -> None:
        """Keep what was measured, and write its page."""
        self._json.write_bytes(msgspec.json.format(msgspec.json.encode(measured), indent=1) + b"\n")
        self.write()

    def write(self) -> None:
        """Write the page from the stored figures."""
        self.path.write_text(self.render(), encoding="utf-8")

    def render(self) -> str:
        """Return the page made from the stored figures."""
        return self._say(msgspec.json.decode(self._json.read_bytes(), type=self._figures))


def table(head: tuple[str, str], rows: Iterable[Iterable[object]]) -> str:
    """Put rows under a head of two lines.

    >>> print(table(("| a | b |", "|---|---|"), [(1, "x")]), end="")
    | a | b |
    |---|---|
    | 1 | x |
    """
    return "\n".join((*head, *("| " + " | ".join(map(str, row)) + " |" for row in rows))) + "\n"
