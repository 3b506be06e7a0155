"""Keep one open store per event loop, since connections belong to the loop that opened them.

Opens nothing before a loop asks. Callers without a loop share one store that opens no connection: they may
use it only for work on a connection of their own. Knows no threads, and nothing of what a store does.
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
        """Return the store of the running loop; open it if there is none."""
        loop = asyncio.get_running_loop()
        opened = self._by_loop.get(loop)
        if opened is None or opened.pid != os.getpid():
            self._forget_closed_loops()
            opened = self._by_loop[loop] = self._open(loop)
        return opened.store

    @property
    def is_open_here(self) -> bool:
        """Whether the running loop has an open store."""
        opened = self._by_loop.get(asyncio.get_running_loop())
        return opened is not None and opened.pid == os.getpid()

    def connection_store(self) -> Store:
        """Return a store for work on the caller's own connection, with or without a running loop."""
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
        """Open a store that the loop closes at its end, if nobody did before.

        `asyncio.run` closes all async generators of its loop when it shuts down: this one closes the store. A
        forked child must not close the store of its parent.
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
        for loop in list(self._by_loop):  # a copy, since other threads add their loops
            if loop.is_closed():
                self._by_loop.pop(loop, None)
