"""Turn what a handler returned or raised, and why it was stopped, into a result. Decides no job's fate."""

from __future__ import annotations

import random
from asyncio import CancelledError
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

import msgspec

from fairlane.app.guards.breaker_block import outcome_of
from fairlane.app.task.context import SoftTimeout
from fairlane.model.failure import BUILT_IN, MESSAGE_CHARS, ErrorClass, Failure, bounded, describe, shown
from fairlane.model.guards.errors import BreakerOpen
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import Because
from fairlane.model.payload.encoding import Undecodable, Unencodable, encode_result
from fairlane.model.policy.declared import Breaker
from fairlane.model.retry.decision import (
    AttemptResult,
    Cancelled,
    Failed,
    HandedBack,
    PermanentFailure,
    Snoozed,
    Succeeded,
    interpret,
)
from fairlane.model.retry.outcome import Cancel, Outcome, Retry
from fairlane.model.retry.own_delay import with_own_delay
from fairlane.worker.attempts.live_attempts import StopCause, StoppableAttempt

_MAPS: Final[tuple[Mapping[type[BaseException], ErrorClass], ...]] = (
    {SoftTimeout: ErrorClass.TIMEOUT},
    BUILT_IN,
)

_SUCCEEDED: Final = Succeeded()

DROPPED: Final = "ResultDropped"
"""The error type of a successful attempt whose result could not be stored."""

Now: TypeAlias = Callable[[], Instant]


def result_of(
    attempt: StoppableAttempt,
    value: Any,
    error: BaseException | None,
    now: Now,
    breaker: Breaker | None = None,
) -> AttemptResult | None:
    """Return how the attempt ended; None if another worker owns the claim.

    A handler that was asked to stop and returns normally anyway has succeeded (S30), unless it was stopped
    for its timeout. `now` reads the store's clock, as far as the worker knows it. `breaker` is that of its
    task.
    """
    cause = attempt.cause
    if cause is StopCause.STALE:
        return None
    if cause is StopCause.TIMEOUT:
        return Failed(_failure(ErrorClass.TIMEOUT, cause), is_counted=True)
    if error is None:
        return _returned(attempt, value, now, breaker)
    if cause is None or not isinstance(error, CancelledError | Cancel):
        return _raised(attempt, error, now, breaker)
    if cause is StopCause.CANCEL:
        return Cancelled(attempt.control.stop_reason or "", Because.ASKED)
    if cause is StopCause.SHUTDOWN and attempt.declared.on_shutdown == "requeue":
        return HandedBack()
    if cause is StopCause.LOST and attempt.claim.job.at_most_once:
        return Failed(_failure(ErrorClass.CRASH, cause))  # nobody knows how far it got (S63)
    return Failed(_failure(ErrorClass.RETRYABLE, cause))


def _returned(attempt: StoppableAttempt, value: Any, now: Now, breaker: Breaker | None) -> AttemptResult:
    """Return the result of a handler that returned: a value that cannot be stored undoes no work (S34)."""
    if value is None:
        return _SUCCEEDED
    if issubclass(type(value), Outcome):  # not isinstance: a proxy's `__class__` is the application's code
        return _raised(attempt, value, now, breaker)
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


def _raised(
    attempt: StoppableAttempt, error: BaseException, now: Now, breaker: Breaker | None
) -> AttemptResult:
    """Return the result of a handler that raised; the task's own functions are asked first (S26-S28)."""
    raised, declared = _unwrapped(error), attempt.declared
    if isinstance(raised, BreakerOpen) and raised.on_open == "snooze":
        spread = 1 + random.random() / 10  # noqa: S311 (spreads jobs, guards nothing)
        return Snoozed(round(raised.retry_in * spread), str(raised))
    is_timed = isinstance(raised, Retry) and isinstance(raised.after, str)  # a date that a server has named
    result = interpret(raised, declared.classify, _MAPS, now() if is_timed else 0)
    if isinstance(result, Failed) and breaker is not None and outcome_of(breaker, raised) is False:
        result = msgspec.structs.replace(result, is_counted=True)
    if isinstance(result, Failed) and declared.retry_delay is not None:
        return with_own_delay(result, raised, attempt.claim.job, declared.retry_delay)
    return result


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


def budget_spent(job: JobRecord) -> AttemptResult:
    """Return the result of an attempt whose budget was spent before it started (S59)."""
    message = f"the budget of task {job.task} is spent until its period ends"
    return PermanentFailure(Failure(ErrorClass.BUDGET, "fairlane.BudgetSpent", message))


def undecodable(error: Undecodable) -> AttemptResult:
    """Return the result of an attempt whose payload cannot be read (S33)."""
    return PermanentFailure(describe(error, ErrorClass.UNDECODABLE))


def _failure(error_class: ErrorClass, cause: StopCause) -> Failure:
    return Failure(error_class, f"fairlane.{cause.name.title()}", f"the handler was stopped: {cause.value}")
