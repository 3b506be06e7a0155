"""Wait out a store that does not answer: try again after a jittered pause, and log it once (S66)."""

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


class StoreOutage:
    """The current outage of a store, shared by all parts of a process: failed tries, and that it was logged.

    A store that is gone for good is no outage. `on_gone` is called once for it, in the thread that met the
    error, so that the process can end.
    """

    def __init__(self, log: Logger, who: str, on_gone: Callable[[], None]) -> None:
        self._log = log
        self._who = who
        self._on_gone = on_gone
        self._tries = 0
        self._failures = 0
        self.is_permanent = False

    def mark(self) -> int:
        """Return a mark for `answered`: an answer to a call made before the last failure proves nothing."""
        return self._failures

    def failed(self, error: StoreError, max_pause: Micros = LONGEST_PAUSE) -> Micros:
        """Note that a call failed, and return the pause before the next try."""
        if isinstance(error, StoreGone):
            self._note_gone(error)
        # Count before logging: the worker's two threads often meet the same outage at once.
        self._tries += 1
        self._failures += 1
        tries = self._tries
        if tries == 1 and not self.is_permanent:
            text = "%s: the store does not answer; running jobs go on: %s"
            self._log.warning(text, self._who, error, extra={"event": "store_away", "part": self._who})
        pause = min(max_pause, LONGEST_PAUSE, FIRST_PAUSE << min(tries - 1, 10))
        return round(pause * random.uniform(0.5, 1.0))  # noqa: S311 (spreads tries, guards nothing)

    def _note_gone(self, error: StoreGone) -> None:
        if not self.is_permanent:
            self.is_permanent = True
            extra = {"event": "store_gone", "part": self._who}
            self._log.critical("%s ends, its store is gone: %s", self._who, error, extra=extra)
            self._on_gone()

    def answered(self, mark: int) -> None:
        """Note that the store has answered a call made at this mark: the outage is over."""
        if self._tries and mark == self._failures:
            text = "%s: the store answers again"
            extra = {"event": "store_back", "part": self._who, "tries": self._tries}
            self._log.info(text, self._who, extra=extra)
            self._tries = 0


def retry_on_outage(
    one_pass: Pass, outage: StoreOutage, *, ends_outage: bool = False, max_pause: Micros = LONGEST_PAUSE
) -> Pass:
    """Make a pass that is tried again after a `StoreError`; any other error goes up.

    Set `ends_outage` only for a pass that calls the store every time: its return then proves that the store
    answers. All parts of a process count their tries together, so a short outage can lead to long pauses; a
    pass with a deadline limits its own with `max_pause`.
    """

    async def retrying_pass() -> Micros | None:
        mark = outage.mark()
        try:
            pause = await one_pass()
        except StoreError as error:
            return outage.failed(error, max_pause)
        if ends_outage:
            outage.answered(mark)
        return pause

    return retrying_pass
