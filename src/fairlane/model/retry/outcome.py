"""How a handler ends its attempt other than by a result: it raises or returns one of these (S28).

Outcome
├── Retry     failed; try again, after the policy's delay or the given one
├── Snooze    not now; come back without counting a failure
├── Fail      dead at once, even with attempts left
├── Cancel    cancelled, without a dead letter
└── Skip      cancelled because there was nothing to do, without a dead letter
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Final, TypeGuard

from fairlane.model.failure import REASON_CHARS, ErrorClass, text_of
from fairlane.model.instants import DAY, SECOND, Duration, Instant, Micros, to_micros
from fairlane.model.retry.backoff import retry_after
from fairlane.model.retry.retry_after import instant_in, seconds_in

_WIDTH: Final = 60
_CLASSES: Final = frozenset(ErrorClass)


class Outcome(Exception):  # noqa: N818 (an outcome is no error)
    """The base of what a handler may raise or return instead of a result."""

    def __init__(self, reason: str = "") -> None:
        """Take a reason for the attempt's history; other values, such as an error, become text."""
        text = _reason(reason)
        super().__init__(text)
        self.reason = text


class Retry(Outcome):
    """The attempt failed; try again if attempts are left."""

    def __init__(
        self,
        reason: str = "",
        *,
        after: Duration | str | None = None,
        error_class: ErrorClass = ErrorClass.RETRYABLE,
    ) -> None:
        """`after` replaces the policy's delay, bounded to 24 hours.

        Seconds, a timedelta, or the text of a Retry-After header: seconds or an HTTP date; a past date means
        at once. Anything else raises ValueError in the handler.
        """
        super().__init__(reason)
        self.after = after
        self.error_class = _class_of(error_class, "Retry")
        self._until: Instant | None = None
        self._wait: Micros | None = None
        if isinstance(after, str):
            self._until, seconds = instant_in(after), seconds_in(after)
            if self._until is None and seconds is None:
                raise ValueError(_no_delay(after))
            self._wait = None if seconds is None else retry_after(seconds)
        elif after is not None:
            self._wait = _waited(after)

    def delay(self, now: Instant) -> Micros | None:
        """Return the delay from this instant that replaces the policy's; None if nothing does.

        >>> Retry(after="Thu, 01 Jan 1970 00:01:00 GMT").delay(45_000_000)
        15000000
        """
        return self._wait if self._until is None else retry_after((self._until - now) / SECOND)


class Snooze(Outcome):
    """Come back after a while; no failure is counted."""

    def __init__(self, delay: Duration, reason: str = "") -> None:
        """`delay` is 1 second to 30 days (S29)."""
        if not _is_duration(delay) or (not isinstance(delay, timedelta) and not math.isfinite(delay)):
            message = f"delay of a Snooze must be seconds or a timedelta, not {text_of(delay, _WIDTH)}"
            raise ValueError(message)
        if not SECOND <= to_micros(delay) <= 30 * DAY:
            shown = delay.total_seconds() if isinstance(delay, timedelta) else delay
            message = f"a snooze lasts 1 second to 30 days, not {shown} s"
            raise ValueError(message)
        super().__init__(reason)
        self.delay = delay


class Fail(Outcome):
    """The job is dead at once, even with attempts left."""

    def __init__(self, reason: str = "", *, error_class: ErrorClass = ErrorClass.NON_RETRYABLE) -> None:
        """`error_class` is for the dead letter."""
        super().__init__(reason)
        self.error_class = _class_of(error_class, "Fail")


class Cancel(Outcome):
    """The job is cancelled, without a dead letter, even with attempts left."""


class Skip(Outcome):
    """There is nothing to do any more: what the job was about is gone. No failure, no retry, no dead letter.

    The job is cancelled because `skipped`, and the worker logs a warning.
    """


def _reason(given: object) -> str:
    if given is None or isinstance(given, str):
        return given or ""
    return text_of(given, REASON_CHARS)


def _is_duration(value: object) -> TypeGuard[Duration]:
    return isinstance(value, timedelta | int | float) and not isinstance(value, bool)


def _no_delay(value: object) -> str:
    wanted = "seconds or a timedelta, 0 or more, or the text of a Retry-After header"
    return f"after of a Retry must be {wanted}, not {text_of(value, _WIDTH)!r}"


def _waited(after: object) -> Micros:
    if not _is_duration(after) or to_micros(after) < 0:
        raise ValueError(_no_delay(after))
    return retry_after(after)


def _class_of(word: object, outcome: str) -> ErrorClass:
    if isinstance(word, str) and word in _CLASSES:
        return ErrorClass(word)
    allowed = ", ".join(ErrorClass)
    message = f"error_class of a {outcome} must be one of {allowed}, not {text_of(word, _WIDTH)!r}"
    raise ValueError(message)
