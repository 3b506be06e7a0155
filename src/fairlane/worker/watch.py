"""Watch all time limits at once, and stop handlers: asked first, pressed next, given up at last (S30-S32).

One pass over what runs, a few times a second; no timer per job. Runs in the worker's loop.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from typing import Final

from fairlane.model.instants import SECOND, Micros
from fairlane.runtime.clock import Clock
from fairlane.runtime.loops import Bell
from fairlane.worker import report
from fairlane.worker.attempt import Attempt, Cause
from fairlane.worker.holdings import Holdings
from fairlane.worker.run import Over

TICK: Final[Micros] = SECOND // 10
_QUIET: Final[Micros] = 60 * SECOND

PATIENCE: Final[Micros] = 10 * SECOND
"""How long a handler that was asked to stop may take before it is pressed."""

LAST_PATIENCE: Final[Micros] = 5 * SECOND
"""How long an async handler that was pressed may take before it is given up."""

HASTE: Final[Micros] = SECOND // 2
"""The same, when the worker must be gone."""


class Watch:
    """Stops handlers whose time is over. Called from the worker's loop only."""

    def __init__(
        self, holdings: Holdings, clock: Clock, over: Over, abandon: Callable[[Attempt], None]
    ) -> None:
        self.bell = Bell()
        self._holdings = holdings
        self._clock = clock
        self._over = over
        self._abandon = abandon
        self._cut_at: Micros | None = None
        self._haste = LAST_PATIENCE

    def look(self) -> Micros:
        """Look at everything that runs; soon again while anything does."""
        now = self._clock.elapsed()
        running = self._holdings.running()
        for attempt in running:
            self._look_at(attempt, now)
        if self._cut_at is not None and now >= self._cut_at:
            self._cut(running, now)
        return TICK if running or self._cut_at is not None else _QUIET

    def end_by(self, at: Micros, *, in_haste: bool) -> None:
        """Let nothing run on after this moment; what does not stop then is soon given up."""
        self._cut_at = at if self._cut_at is None else min(at, self._cut_at)
        self._haste = HASTE if in_haste else LAST_PATIENCE
        self.bell.ring()

    def stop(self, attempt: Attempt, cause: Cause) -> None:
        """Ask a handler to stop; the first cause stays."""
        if attempt.is_over or attempt.cause is not None:
            return
        attempt.cause = cause
        attempt.rein.stop(cause.value)
        report.stopped(attempt, cause)
        now = self._clock.elapsed()
        if cause in {Cause.TIMEOUT, Cause.SHUTDOWN}:
            self._press(attempt, now)
            return
        attempt.give_up_at = now + PATIENCE
        _interrupt(attempt)

    def _look_at(self, attempt: Attempt, now: Micros) -> None:
        if attempt.cause is not None:
            if now >= attempt.give_up_at:
                self._escalate(attempt, now)
        elif attempt.hard_at is not None and now >= attempt.hard_at:
            self.stop(attempt, Cause.TIMEOUT)
        elif attempt.soft_at is not None and now >= attempt.soft_at and not attempt.rein.is_soft:
            attempt.rein.is_soft = True
            _interrupt(attempt)

    def _escalate(self, attempt: Attempt, now: Micros) -> None:
        if attempt.is_pressed:
            self._give_up(attempt)
        else:
            self._press(attempt, now)

    def _press(self, attempt: Attempt, now: Micros) -> None:
        """Use the hard means: an async handler is cancelled, a thread can only be left alone."""
        attempt.is_pressed = True
        _interrupt(attempt)
        if attempt.declared.handler.is_async or attempt.cause is Cause.SHUTDOWN:
            attempt.give_up_at = now + self._haste
        else:
            self._give_up(attempt)

    def _give_up(self, attempt: Attempt) -> None:
        report.abandoned(attempt)
        self._abandon(attempt)
        self._over(attempt, None, CancelledError())

    def _cut(self, running: list[Attempt], now: Micros) -> None:
        for attempt in running:
            self.stop(attempt, Cause.SHUTDOWN)
            attempt.give_up_at = min(attempt.give_up_at, now + self._haste)
            attempt.is_pressed = True


def _interrupt(attempt: Attempt) -> None:
    """Cancel an async handler; one in a thread looks at its context by itself."""
    if attempt.declared.handler.is_async and attempt.task is not None:
        attempt.task.cancel()
