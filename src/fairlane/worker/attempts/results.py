"""Turn what a handler returned or raised, and why it was stopped, into a result. Decides no job's fate."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from fairlane.app.task.context import SoftTimeout
from fairlane.model.failure import BUILT_IN, MESSAGE_CHARS, ErrorClass, Failure, bounded, describe, shown
from fairlane.model.instants import Instant
from fairlane.model.lifecycle.states import Because
from fairlane.model.payload.encoding import Undecodable, Unencodable, encode_result
from fairlane.model.retry.decision import (
    AttemptResult,
    Cancelled,
    Failed,
    HandedBack,
    PermanentFailure,
    Succeeded,
    interpret,
)
from fairlane.model.retry.outcome import Cancel, Outcome, Retry
from fairlane.worker.attempts.live_attempts import LiveAttempt, StopCause

_MAPS: Final[tuple[Mapping[type[BaseException], ErrorClass], ...]] = (
    {SoftTimeout: ErrorClass.TIMEOUT},
    BUILT_IN,
)

_SUCCEEDED: Final = Succeeded()

DROPPED: Final = "ResultDropped"
"""The error type of a successful attempt whose result could not be stored."""

Now: TypeAlias = Callable[[], Instant]


def result_of(
    attempt: LiveAttempt, value: Any, error: BaseException | None, now: Now
) -> AttemptResult | None:
    """Return how the attempt ended; None if another worker owns the claim.

    A handler that was asked to stop and returns normally anyway has succeeded (S30), unless it was stopped
    for its timeout. `now` reads the store's clock, as far as the worker knows it.
    """
    cause = attempt.cause
    if cause is StopCause.STALE:
        return None
    if cause is StopCause.TIMEOUT:
        return Failed(_failure(ErrorClass.TIMEOUT, cause))
    if error is None:
        return _returned(attempt, value, now)
    if cause is None or not isinstance(error, CancelledError | Cancel):
        return _raised(attempt, error, now)
    if cause is StopCause.CANCEL:
        return Cancelled(attempt.control.stop_reason or "", Because.ASKED)
    if cause is StopCause.SHUTDOWN and attempt.declared.on_shutdown == "requeue":
        return HandedBack()
    if cause is StopCause.LOST and attempt.claim.job.at_most_once:
        return Failed(_failure(ErrorClass.CRASH, cause))  # nobody knows how far it got (S63)
    return Failed(_failure(ErrorClass.RETRYABLE, cause))


def _returned(attempt: LiveAttempt, value: Any, now: Now) -> AttemptResult:
    """Return the result of a handler that returned: a value that cannot be stored undoes no work (S34)."""
    if value is None:
        return _SUCCEEDED
    if issubclass(type(value), Outcome):  # not isinstance: a proxy's `__class__` is the application's code
        return _raised(attempt, value, now)
    if not attempt.declared.keep_result:
        return _SUCCEEDED
    encoded = encode_or_drop(value)
    if encoded.dropped is None or attempt.declared.on_bad_result == "drop":
        return encoded
    message = f"the work was done, but its result cannot be kept: {encoded.dropped.message}"
    return PermanentFailure(Failure(ErrorClass.NON_RETRYABLE, "Unencodable", bounded(message, MESSAGE_CHARS)))


def encode_or_drop(value: Any) -> Succeeded:
    """Encode a value, or say why it is dropped: whatever its own code raises, the work was done."""
    try:
        return Succeeded(encode_result(value))
    except Unencodable as error:
        reason = "; ".join(f"{one.field} {one.message}" for one in error.problems)
    except Exception as error:  # noqa: BLE001 (encoding runs the value's own code)
        reason = f"result raised {type(error).__name__}: {shown(error)}"
    return Succeeded(None, Failure(ErrorClass.NON_RETRYABLE, DROPPED, bounded(reason, MESSAGE_CHARS)))


def _raised(attempt: LiveAttempt, error: BaseException, now: Now) -> AttemptResult:
    """Return the result of a handler that raised; the task's own classifier is asked first (S27, S28)."""
    is_timed = isinstance(error, Retry) and isinstance(error.after, str)  # a date that a server has named
    return interpret(_unwrapped(error), attempt.declared.classify, _MAPS, now() if is_timed else 0)


def _unwrapped(error: BaseException) -> BaseException:
    """Take a soft timeout out of the exception group of a task group, if nothing else is in it."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        try:
            soft, rest = group.split(SoftTimeout)
        except RecursionError:  # groups nested without end: leave it as it is
            return group
        if soft is not None and rest is None:
            return SoftTimeout("inside a task group").with_traceback(group.__traceback__)
        return group
    return error


def undecodable(error: Undecodable) -> AttemptResult:
    """Return the result of an attempt whose payload cannot be read (S33)."""
    return PermanentFailure(describe(error, ErrorClass.UNDECODABLE))


def _failure(error_class: ErrorClass, cause: StopCause) -> Failure:
    return Failure(error_class, f"fairlane.{cause.name.title()}", f"the handler was stopped: {cause.value}")
