"""Render scripts with other bounds than the usual ones: small histories reach what very many jobs do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fairlane.store.redis import scripts


@contextmanager
def rendered(**words: int) -> Iterator[None]:
    """Give words of the scripts other values: `INLINE_MOST` strands in the record of a turn, `HEIRS`."""
    usual = {word: scripts._CONSTANTS[word] for word in words}
    _render(words)
    try:
        yield
    finally:
        _render(usual)


def _render(words: dict[str, int] | dict[str, int | str]) -> None:
    scripts._CONSTANTS.update(words)
    scripts._values.cache_clear()
    scripts.load.cache_clear()
