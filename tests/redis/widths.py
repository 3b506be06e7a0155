"""Let turns of few tasks be stored as those of very many are, so that small histories reach it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fairlane.store.redis import scripts


@contextmanager
def inline_most(strands: int) -> Iterator[None]:
    """Render scripts that keep no more strands than so many in the record of a turn."""
    usual = scripts._CONSTANTS["INLINE_MOST"]
    _render(strands)
    try:
        yield
    finally:
        _render(usual)


def _render(strands: int | str) -> None:
    scripts._CONSTANTS["INLINE_MOST"] = strands
    scripts._values.cache_clear()
    scripts.load.cache_clear()
