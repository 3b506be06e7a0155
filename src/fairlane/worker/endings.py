"""Say how an attempt ended, from what its handler did and why it was stopped. Decides no job's fate."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from fairlane.app.context import SoftTimeout
from fairlane.model.failure import BUILT_IN, MESSAGE_CHARS, ErrorClass, Failure, bounded, describe, shown
from fairlane.model.instants import Instant
from fairlane.model.judge import Cancelled, Ending, Failed, HandedBack, Ruined, Succeeded, interpret
from fairlane.model.lifecycle import Because
from fairlane.model.outcome import Cancel, Outcome, Retry
from fairlane.model.payload import Undecodable, Unencodable, encode_result
from fairlane.worker.attempt import Attempt, Cause

_MAPS: Final[tuple[Mapping[type[BaseException], ErrorClass], ...]] = (
    {SoftTimeout: ErrorClass.TIMEOUT},
    BUILT_IN,
)

_NOTHING: Final = Succeeded()

DROPPED: Final = "ResultDropped"
"""What a succeeded attempt has as its error type if its result could not be kept."""

Now: TypeAlias = Callable[[], Instant]


def returned(attempt: Attempt, result: Any, now: Now) -> Ending:
    """Read what a handler returned; a result that cannot be kept is told apart from the work (S34)."""
    if result is None:
        return _NOTHING
    if issubclass(type(result), Outcome):  # not isinstance: a proxy's `__class__` is the application's code
        return raised(attempt, result, now)
    if not attempt.declared.keep_result:
        return _NOTHING
    kept = kept_result(result)
    if kept.dropped is None or attempt.declared.on_bad_result == "drop":
        return kept
    message = f"the work was done, but its result cannot be kept: {kept.dropped.message}"
    return Ruined(Failure(ErrorClass.NON_RETRYABLE, "Unencodable", bounded(message, MESSAGE_CHARS)))


def kept_result(result: Any) -> Succeeded:
    """Encode a result, or say why it is dropped; whatever its own code raises, the work was done."""
    try:
        return Succeeded(encode_result(result))
    except Unencodable as error:
        said = "; ".join(f"{one.field} {one.message}" for one in error.problems)
    except Exception as error:  # noqa: BLE001 (encoding runs code of the result's own)
        said = f"result raised {type(error).__name__}: {shown(error)}"
    return Succeeded(None, Failure(ErrorClass.NON_RETRYABLE, DROPPED, bounded(said, MESSAGE_CHARS)))


def raised(attempt: Attempt, error: BaseException, now: Now) -> Ending:
    """Read what a handler raised, as the task's own classifier does first (S27, S28)."""
    is_timed = isinstance(error, Retry) and isinstance(error.after, str)  # a date that a server has named
    return interpret(_unwrapped(error), attempt.declared.classify, _MAPS, now() if is_timed else 0)


def _unwrapped(error: BaseException) -> BaseException:
    """Take a soft timeout out of the group that a task group puts it in, if nothing else went wrong there."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        try:
            soft, rest = group.split(SoftTimeout)
        except RecursionError:  # groups in groups in groups: what it is, it may stay
            return group
        if soft is not None and rest is None:
            return SoftTimeout("inside a task group").with_traceback(group.__traceback__)
        return group
    return error


def undecodable(error: Undecodable) -> Ending:
    """Read a payload that cannot be read (S33)."""
    return Ruined(describe(error, ErrorClass.UNDECODABLE))


def ending_of(attempt: Attempt, result: Any, error: BaseException | None, now: Now) -> Ending | None:
    """Say how the attempt ended; None if that is nobody's business any more, since its claim is another's.

    A handler that was stopped and returns normally anyway has succeeded (S30), but not after its timeout.
    `now` reads the store's clock, as far as the worker knows it.
    """
    cause = attempt.cause
    if cause is Cause.STALE:
        return None
    if cause is Cause.TIMEOUT:
        return Failed(_failure(ErrorClass.TIMEOUT, cause))
    if error is None:
        return returned(attempt, result, now)
    if cause is None or not isinstance(error, CancelledError | Cancel):
        return raised(attempt, error, now)
    if cause is Cause.CANCEL:
        return Cancelled(attempt.rein.stop_reason or "", Because.ASKED)
    if cause is Cause.SHUTDOWN and attempt.declared.on_shutdown == "requeue":
        return HandedBack()
    if cause is Cause.LOST and attempt.claim.job.at_most_once:
        return Failed(_failure(ErrorClass.CRASH, cause))  # nobody knows how far it came (S63)
    return Failed(_failure(ErrorClass.RETRYABLE, cause))


def _failure(error_class: ErrorClass, cause: Cause) -> Failure:
    return Failure(error_class, f"fairlane.{cause.name.title()}", f"the handler was stopped: {cause.value}")
