"""The error of a handler that meets a breaker which lets it not pass."""

from __future__ import annotations

from datetime import datetime

from fairlane.model.errors import FairlaneError
from fairlane.model.instants import SECOND, Micros
from fairlane.model.policy.declared import OnOpen


class BreakerOpen(FairlaneError):  # noqa: N818 (a state of the world, as `Closed`)
    """A circuit breaker lets nobody pass now, or has let as many pass as it may.

    In a handler this makes the job snooze until then, or fails the attempt, as the breaker's `on_open` says.
    `until` is when it is worth another try, None if nobody knows.
    """

    def __init__(
        self,
        breaker: str,
        until: datetime | None = None,
        *,
        on_open: OnOpen = "snooze",
        retry_in: Micros = SECOND,
    ) -> None:
        """Say which breaker, and until when."""
        when = "" if until is None else f" until {until:%Y-%m-%d %H:%M:%S} UTC"
        super().__init__(f"breaker {breaker} is open{when}")
        self.breaker = breaker
        self.until = until
        self.on_open: OnOpen = on_open
        self.retry_in = retry_in

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with what it was made of."""
        return (_remade, (self.breaker, self.until, self.on_open, self.retry_in))


def _remade(breaker: str, until: datetime | None, on_open: OnOpen, retry_in: Micros) -> BreakerOpen:
    return BreakerOpen(breaker, until, on_open=on_open, retry_in=retry_in)
