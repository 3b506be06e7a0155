"""What a handler can say about its attempt: raise one of these, or return it (S28).

Outcome
├── Retry     failed; try again, at the policy's time or after the given one
├── Snooze    not now; come back without counting a failure
├── Fail      dead at once, whatever attempts are left
└── Cancel    cancelled, without a dead letter
"""

from __future__ import annotations

from datetime import timedelta

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import DAY, SECOND, Duration, to_micros


class Outcome(Exception):  # noqa: N818 (an outcome is no error)
    """The base of what a handler may raise or return instead of a result."""

    def __init__(self, reason: str = "") -> None:
        """Keep the reason for the attempt's history."""
        super().__init__(reason)
        self.reason = reason


class Retry(Outcome):
    """The attempt failed; try again if attempts are left."""

    def __init__(
        self,
        reason: str = "",
        *,
        after: Duration | None = None,
        error_class: ErrorClass = ErrorClass.RETRYABLE,
    ) -> None:
        """`after` replaces the policy's delay, bounded to 24 hours."""
        if after is not None:
            to_micros(after)  # a delay that means nothing is the handler's error, raised where it stands
        super().__init__(reason)
        self.after = after
        self.error_class = ErrorClass(error_class)


class Snooze(Outcome):
    """Come back after a while; no failure is counted."""

    def __init__(self, delay: Duration, reason: str = "") -> None:
        """Take 1 second to 30 days (S29)."""
        if not SECOND <= to_micros(delay) <= 30 * DAY:
            shown = delay.total_seconds() if isinstance(delay, timedelta) else delay
            message = f"a snooze lasts 1 second to 30 days, not {shown} s"
            raise ValueError(message)
        super().__init__(reason)
        self.delay = delay


class Fail(Outcome):
    """Dead at once, regardless of attempts left."""

    def __init__(self, reason: str = "", *, error_class: ErrorClass = ErrorClass.NON_RETRYABLE) -> None:
        """Keep the class for the dead letter."""
        super().__init__(reason)
        self.error_class = ErrorClass(error_class)


class Cancel(Outcome):
    """Cancelled, without a dead letter, regardless of attempts left."""
