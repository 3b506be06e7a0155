"""Bear with a store that is away: try again after a jittered pause, and say so once (S66)."""

from __future__ import annotations

import random
from collections.abc import Callable
from logging import Logger
from typing import Final

from fairlane.model.errors import StoreError, StoreGone
from fairlane.model.instants import SECOND, Micros
from fairlane.runtime.loops import Pass

FIRST_PAUSE: Final[Micros] = SECOND // 5
LONGEST_PAUSE: Final[Micros] = 5 * SECOND


class Absence:
    """What a part of a process knows of its store being away: how many tries ago, and that it was said.

    A store that is gone for good is no absence: that is told once, to whoever can end the process, in the
    thread that has met it.
    """

    def __init__(self, log: Logger, who: str, gone: Callable[[], None]) -> None:
        self._log = log
        self._who = who
        self._gone = gone
        self._tries = 0
        self._met = 0
        self.is_for_good = False

    def mark(self) -> int:
        """Remember this moment: an answer to what was asked before the last failure tells nothing."""
        return self._met

    def met(self, error: StoreError) -> Micros:
        """Note that the store did not answer, and say how long to wait before the next try."""
        if isinstance(error, StoreGone):
            self._tell_gone(error)
        # Counted before it is said: the worker's two threads often meet the same outage at once.
        self._tries += 1
        self._met += 1
        tries = self._tries
        if tries == 1 and not self.is_for_good:
            text = "%s: the store does not answer, what runs goes on: %s"
            self._log.warning(text, self._who, error, extra={"event": "store_away", "part": self._who})
        pause = min(LONGEST_PAUSE, FIRST_PAUSE << min(tries - 1, 10))
        return round(pause * random.uniform(0.5, 1.0))  # noqa: S311 (spreads tries, guards nothing)

    def _tell_gone(self, error: StoreGone) -> None:
        if not self.is_for_good:
            self.is_for_good = True
            extra = {"event": "store_gone", "part": self._who}
            self._log.critical("%s ends, its store is gone: %s", self._who, error, extra=extra)
            self._gone()

    def over(self, mark: int) -> None:
        """Note that the store has answered what was asked at this mark."""
        if self._tries and mark == self._met:
            text = "%s: the store answers again"
            extra = {"event": "store_back", "part": self._who, "tries": self._tries}
            self._log.info(text, self._who, extra=extra)
            self._tries = 0


def enduring(one_pass: Pass, absence: Absence, *, is_witness: bool = False) -> Pass:
    """Make a pass that outlasts the store's absence; any other error goes on up.

    Only a witness, which asks the store every time it is called, can tell that the absence is over.
    """

    async def endure() -> Micros | None:
        mark = absence.mark()
        try:
            pause = await one_pass()
        except StoreError as error:
            return absence.met(error)
        if is_witness:
            absence.over(mark)
        return pause

    return endure
