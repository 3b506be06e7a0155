"""Bear with a store that is away: try again after a jittered pause, and say so once (S66)."""

from __future__ import annotations

import random
from logging import Logger
from typing import Final

from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND, Micros
from fairlane.runtime.loops import Pass

FIRST_PAUSE: Final[Micros] = SECOND // 5
LONGEST_PAUSE: Final[Micros] = 5 * SECOND


class Absence:
    """What a part of a process knows of its store being away: how many tries ago, and that it was said."""

    def __init__(self, log: Logger, who: str) -> None:
        self._log = log
        self._who = who
        self._tries = 0

    @property
    def is_over(self) -> bool:
        """Whether the store answered last time."""
        return self._tries == 0

    def met(self, error: StoreError) -> Micros:
        """Note that the store did not answer, and say how long to wait before the next try."""
        if not self._tries:
            text = "%s: the store does not answer, what runs goes on: %s"
            self._log.warning(text, self._who, error, extra={"event": "store_away", "part": self._who})
        self._tries += 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE << min(self._tries - 1, 10))
        return round(pause * random.uniform(0.5, 1.0))  # noqa: S311 (spreads tries, guards nothing)

    def over(self) -> None:
        """Note that the store has answered."""
        if self._tries:
            text = "%s: the store answers again"
            extra = {"event": "store_back", "part": self._who, "tries": self._tries}
            self._log.info(text, self._who, extra=extra)
            self._tries = 0


def enduring(one_pass: Pass, absence: Absence) -> Pass:
    """Make a pass that outlasts the store's absence; any other error goes on up."""

    async def endure() -> Micros | None:
        try:
            pause = await one_pass()
        except StoreError as error:
            return absence.met(error)
        absence.over()
        return pause

    return endure
