"""Read what many parts of one page need a single time: the counters of all tenants.

Inside `read_once()` the first reading is kept, and answers those that follow. Everywhere else each reading
is of its own moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

T = TypeVar("T")

_kept: Final[ContextVar[dict[Hashable, Any] | None]] = ContextVar("fairlane_read_once", default=None)


@contextmanager
def read_once() -> Generator[None]:
    """Cache what is read until the end of the block. Code in it must not read again what it has changed."""
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


def is_reading_once() -> bool:
    """Whether this is inside `read_once`."""
    return _kept.get() is not None


def is_kept(key: Hashable) -> bool:
    """Whether something is kept under a key, or being read."""
    found = _kept.get()
    return found is not None and key in found


async def once(key: Hashable, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return what is kept under a key, else read it, and keep it inside `read_once`.

    Who asks while it is being read waits for the same reading.
    """
    found = _kept.get()
    if found is None:
        return await read()
    if key not in found:
        found[key] = asyncio.ensure_future(read())
    answer: T = await found[key]
    return answer
