"""Check all timeouts, and stop handlers in steps: ask, cancel by force, abandon or kill (S30-S32).

One pass over what runs, ten times a second; there is no timer per job. Used by the worker's loop only.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from typing import Final

from fairlane.model.instants import SECOND, Micros
from fairlane.runtime.clock import Clock
from fairlane.worker import report
from fairlane.worker.attempts.live_attempts import LiveAttempt, LiveAttempts, StopCause
from fairlane.worker.attempts.run_handler import Ended
from fairlane.worker.shutdown import Shutdown

CHECK_EVERY: Final[Micros] = SECOND // 10
_IDLE_PAUSE: Final[Micros] = 60 * SECOND

CANCEL_GRACE: Final[Micros] = 10 * SECOND
"""How long a handler that was asked to stop may take before it is cancelled by force."""

LOST_GRACE: Final[Micros] = 4 * SECOND // 10
"""How long a handler in a child process may take if its claim is lost, or its lease about to end."""


class Timeouts:
    """Stops handlers whose time is over, or whose claim, lease or worker is ending.

    `checked_at` is when the loop last turned, while handlers run. While it `is_idle`, the next check is up to
    a minute away: whoever starts a handler must wake it.
    """

    def __init__(
        self,
        attempts: LiveAttempts,
        clock: Clock,
        shutdown: Shutdown,
        ended: Ended,
        abandon: Callable[[LiveAttempt], None],
    ) -> None:
        self._attempts = attempts
        self._clock = clock
        self._shutdown = shutdown
        self._ended = ended
        self._abandon = abandon
        self.checked_at = clock.elapsed()
        self.is_idle = True

    def check(self) -> Micros:
        """Check everything that runs; return the pause before the next check."""
        now = self.checked_at = self._clock.elapsed()
        running = self._attempts.running()
        for attempt in running:
            self._check(attempt, now)
        stop_at = self._shutdown.stop_at
        if stop_at is not None and now >= stop_at:
            self._stop_all(running, now)
        self.is_idle = not running and stop_at is None
        return _IDLE_PAUSE if self.is_idle else CHECK_EVERY

    def stop(self, attempt: LiveAttempt, cause: StopCause) -> None:
        """Ask a handler to stop; the first cause stays."""
        if attempt.is_over or attempt.cause is not None:
            return
        attempt.cause = cause
        attempt.control.stop(cause.value, is_lost=cause.is_lost)
        report.stopped(attempt, cause)
        now = self._clock.elapsed()
        if cause in {StopCause.TIMEOUT, StopCause.SHUTDOWN}:
            self._cancel_last(attempt, now)
            return
        attempt.give_up_at = now + (
            LOST_GRACE if cause.is_lost and attempt.child is not None else CANCEL_GRACE
        )
        _cancel(attempt)

    def _check(self, attempt: LiveAttempt, now: Micros) -> None:
        if attempt.cause is not None:
            if now >= attempt.give_up_at:
                self._escalate(attempt, now)
        elif attempt.hard_at is not None and now >= attempt.hard_at:
            self.stop(attempt, StopCause.TIMEOUT)
        elif (
            attempt.soft_at is not None and now >= attempt.soft_at and not attempt.control.is_soft_timeout_due
        ):
            attempt.control.is_soft_timeout_due = True
            _cancel(attempt)

    def _escalate(self, attempt: LiveAttempt, now: Micros) -> None:
        if attempt.is_abandoned_next or attempt.child is not None:
            self._give_up(attempt)
        else:
            self._cancel_last(attempt, now)

    def _cancel_last(self, attempt: LiveAttempt, now: Micros) -> None:
        """Cancel for the last time; then abandon. A thread cannot be cancelled, only abandoned."""
        attempt.is_abandoned_next = True
        if attempt.child is not None:
            attempt.give_up_at = now + self._shutdown.grace
            attempt.child.terminate(attempt)
            return
        _cancel(attempt)
        if attempt.declared.handler.is_async or attempt.cause is StopCause.SHUTDOWN:
            attempt.give_up_at = now + self._shutdown.grace
        else:
            self._give_up(attempt)

    def _give_up(self, attempt: LiveAttempt) -> None:
        if attempt.child is None:
            report.abandoned(attempt)
        else:
            report.killed(attempt)
        self._abandon(attempt)
        self._ended(attempt, None, CancelledError())

    def _stop_all(self, running: list[LiveAttempt], now: Micros) -> None:
        for attempt in running:
            self.stop(attempt, StopCause.SHUTDOWN)
            attempt.give_up_at = min(attempt.give_up_at, now + self._shutdown.grace)
            attempt.is_abandoned_next = True


def _cancel(attempt: LiveAttempt) -> None:
    """Cancel the task of an async handler; a plain one in a thread looks at its context by itself."""
    if attempt.child is not None:
        attempt.child.stop(attempt)
    elif attempt.declared.handler.is_async and attempt.task is not None:
        attempt.task.cancel()
