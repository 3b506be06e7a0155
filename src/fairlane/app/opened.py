"""Keep one open store per event loop, since connections belong to the loop they were made in.

Opens nothing before a loop asks. Knows neither threads nor what a store does. Callers without a loop have one
store, too, which they may ask only for what happens on a connection of their own: it opens nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import NamedTuple

from fairlane.store.contract import Store


class _Opened(NamedTuple):
    pid: int
    store: Store
    keeping: AsyncGenerator[None, None]


class OpenStores:
    """The stores of one application, by event loop; a forked child opens its own."""

    def __init__(self, opener: Callable[[], Store]) -> None:
        self._opener = opener
        self._by_loop: dict[asyncio.AbstractEventLoop, _Opened] = {}
        self._without_loop: Store | None = None

    def here(self) -> Store:
        """Give the store of the running loop, opened now if it was not."""
        loop = asyncio.get_running_loop()
        opened = self._by_loop.get(loop)
        if opened is None or opened.pid != os.getpid():
            self._forget_closed_loops()
            opened = self._by_loop[loop] = self._open(loop)
        return opened.store

    def joining(self) -> Store:
        """Give a store for work on the caller's own connection, in a loop or in none."""
        try:
            return self.here()
        except RuntimeError:
            if self._without_loop is None:
                self._without_loop = self._opener()
            return self._without_loop

    async def aclose(self) -> None:
        """Close the store of the running loop, if it has one."""
        opened = self._by_loop.pop(asyncio.get_running_loop(), None)
        if opened is not None and opened.pid == os.getpid():
            await opened.keeping.aclose()

    def _open(self, loop: asyncio.AbstractEventLoop) -> _Opened:
        """Open a store that the loop closes before it ends, if nobody did.

        A loop that shuts down, as `asyncio.run` lets it, closes the generators that were begun in it. A
        forked child leaves those of its parent alone.
        """
        store, pid = self._opener(), os.getpid()

        async def keep() -> AsyncGenerator[None, None]:
            try:
                yield
            finally:
                if pid == os.getpid():
                    self._by_loop.pop(loop, None)
                    await store.upkeep.aclose()

        keeping = keep()
        with suppress(StopIteration):
            keeping.__anext__().send(None)
        return _Opened(pid, store, keeping)

    def _forget_closed_loops(self) -> None:
        for loop in list(self._by_loop):  # a copy: other threads have loops, too
            if loop.is_closed():
                self._by_loop.pop(loop, None)
