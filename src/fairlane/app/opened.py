"""Keep one open store per event loop, since connections belong to the loop they were made in.

Opens nothing before a loop asks. Knows neither threads nor what a store does. Callers without a loop have one
store, too, which they may ask only for what happens on a connection of their own: it opens nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import NamedTuple
from weakref import WeakKeyDictionary

from fairlane.store.contract import Store


class _Opened(NamedTuple):
    pid: int
    store: Store


class OpenStores:
    """The stores of one application, by event loop; a forked child opens its own."""

    def __init__(self, opener: Callable[[], Store]) -> None:
        self._opener = opener
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _Opened] = WeakKeyDictionary()
        self._without_loop: Store | None = None

    def here(self) -> Store:
        """Give the store of the running loop, opened now if it was not."""
        loop = asyncio.get_running_loop()
        opened = self._by_loop.get(loop)
        if opened is None or opened.pid != os.getpid():
            opened = self._by_loop[loop] = _Opened(os.getpid(), self._opener())
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
            await opened.store.upkeep.aclose()
