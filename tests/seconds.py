"""Bounds in seconds that a busy machine cannot break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

_STEP: Final = 0.01


@asynccontextmanager
async def counted() -> AsyncIterator[Callable[[], float]]:
    """Count the seconds that this loop was given: when the machine is held up, a late step counts as one.

    By these, and not by the machine's, a test bounds what something in its loop may take.
    """
    seconds = 0.0

    async def count() -> None:
        nonlocal seconds
        while True:
            await asyncio.sleep(_STEP)
            seconds += _STEP

    counting = asyncio.ensure_future(count())
    try:
        yield lambda: seconds
    finally:
        counting.cancel()
