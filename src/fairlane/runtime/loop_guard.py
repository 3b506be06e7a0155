"""Notice an event loop that stands still, from a thread beside it (S127). Knows not what the loop does.

The loop notes that it turns, as often as the thread looks. Looks are counted, no time: a process that was
stopped, or a machine that slept, makes one look late, and its loop is not to blame.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from fairlane.model.instants import SECOND, Micros

LOOKS: Final = 10
"""How many looks in a row must find that the loop has not turned."""


class LoopGuard:
    """Calls `on_stall` once when the loop has stood still for so long, and `on_resume` when it turns again.

    Both are called in the thread.
    """

    def __init__(self, allowed: Micros, on_stall: Callable[[], None], on_resume: Callable[[], None]) -> None:
        self._every = max(1, allowed // LOOKS)
        self._on_stall = on_stall
        self._on_resume = on_resume
        self._turns = 0
        self._seen = 0
        self._still = 0

    async def turn(self) -> Micros:
        """Note that the loop turns; return the pause before the next time. A pass that the loop repeats."""
        self._turns += 1
        return self._every

    def look(self) -> None:
        """Look whether the loop has turned since the look before."""
        if self._turns != self._seen:
            self._seen = self._turns
            if self._still >= LOOKS:
                self._on_resume()
            self._still = 0
            return
        self._still += 1
        if self._still == LOOKS:
            self._on_stall()

    @contextmanager
    def watching(self) -> Generator[None]:
        """Look again and again, in a thread, until the block ends."""
        over = threading.Event()

        def look_on() -> None:
            while not over.wait(self._every / SECOND):
                self.look()

        threading.Thread(target=look_on, name="fairlane-guard", daemon=True).start()
        try:
            yield
        finally:
            over.set()
