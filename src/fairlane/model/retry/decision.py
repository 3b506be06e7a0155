"""Decide what a finished attempt means: success, retry, snooze, cancel or death. Knows no clock and no store.

1. `interpret` reads what the handler raised or returned as an `AttemptResult`.
2. `decide_settlement` turns the result into the settlement that a store applies.
3. `reconcile` corrects it by what only the store knows then: a cancel asked for meanwhile, the job's expiry.

`lose_lease` decides for a claim whose lease has expired, so that nobody reports a result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from fairlane.model.failure import RETRIED, Classifier, ClassMap, ErrorClass, Failure, classify, describe
from fairlane.model.fingerprint import marked
from fairlane.model.instants import HOUR, SECOND, Instant, Micros, to_micros
from fairlane.model.job import AttemptOutcome, AttemptRecord, Claim, JobRecord, Settlement
from fairlane.model.lifecycle.states import Because, Event, State, because, is_expired
from fairlane.model.retry.backoff import RetryPolicy, backoff_for
from fairlane.model.retry.outcome import Cancel, Fail, Outcome, Retry, Skip, Snooze

MAX_SNOOZES: Final = 1_000
MAX_CRASHES: Final = 3
"""So many crashes end a job if the last two were its own (S40), unless the configuration says otherwise."""

MAX_LOSSES: Final = 5
"""So many crashes of any kind end a job."""

_UNKNOWN_FIRST: Final[Micros] = 5 * SECOND
_UNKNOWN_LONGEST: Final[Micros] = 60 * SECOND
_UNKNOWN_FOR: Final[Micros] = HOUR

_replace = msgspec.structs.replace


class Succeeded(msgspec.Struct, frozen=True):
    """The handler returned. The result is encoded, or `dropped` says why it cannot be stored."""

    result: bytes | None = None
    dropped: Failure | None = None


class Failed(msgspec.Struct, frozen=True):
    """The attempt failed: an error, a timeout, a crash of its child process, or `Retry`.

    `after` is the delay that `Retry` or the task's own function names. `classifier_error` is what the task's
    own classifier raised (S27), `delay_error` what is wrong with that function (S26): for the worker to log.
    If it `is_counted`, it is a failure of what the task's breaker protects (S58).
    """

    failure: Failure
    after: Micros | None = None
    classifier_error: str | None = None
    delay_error: str | None = None
    is_counted: bool = False


class Snoozed(msgspec.Struct, frozen=True):
    """The handler asked to run again later."""

    delay: Micros
    reason: str = ""
    because: Because = Because.SNOOZE


class PermanentFailure(msgspec.Struct, frozen=True):
    """The job is dead at once: `Fail`, a payload that cannot be read, a result that cannot be stored."""

    failure: Failure


class Cancelled(msgspec.Struct, frozen=True):
    """The handler raised `Cancel` or `Skip`, or stopped because it was asked to."""

    reason: str = ""
    because: Because = Because.CHOSEN


class HandedBack(msgspec.Struct, frozen=True):
    """The worker gives the claim back: the job is requeued at shutdown or, `is_unstarted`, never ran."""

    is_unstarted: bool = False


class Unknown(msgspec.Struct, frozen=True):
    """This worker does not know the task in the job's version or a newer one.

    `unseen_for` is how long no live worker has known it. `newest` is the newest version that this worker
    knows, None if it does not know the task. If the task `is_known_elsewhere`, a live worker can run the job,
    and the delay does not grow.
    """

    unseen_for: Micros = 0
    newest: int | None = None
    is_known_elsewhere: bool = False


AttemptResult: TypeAlias = Succeeded | Failed | Snoozed | PermanentFailure | Cancelled | HandedBack | Unknown


def interpret(
    raised: BaseException, classifier: Classifier | None, maps: Iterable[ClassMap], now: Instant = 0
) -> AttemptResult:
    """Read an exception, or an `Outcome` that was returned, as the attempt's result (S27, S28).

    A date in a `Retry` is counted from `now`.

    >>> interpret(Snooze(5), None, [])
    Snoozed(delay=5000000, reason='', because=<Because.SNOOZE: 'snooze'>)
    """
    match raised:
        case Retry():
            return Failed(describe(raised, _survived(raised.error_class)), raised.delay(now))
        case Snooze():
            return Snoozed(to_micros(raised.delay), raised.reason)
        case Fail():
            return PermanentFailure(describe(raised, raised.error_class))
        case Cancel():
            return Cancelled(raised.reason)
        case Skip():
            return Cancelled(raised.reason, Because.SKIPPED)
        case Outcome():
            return Failed(describe(raised, ErrorClass.RETRYABLE))
        case _:
            found = classify(raised, classifier, maps)
            failure = describe(raised, _survived(found.error_class))
            return Failed(failure, classifier_error=found.classifier_error)


def _survived(error_class: ErrorClass) -> ErrorClass:
    # Only the death of a process counts as a crash (S40): a handler that reports one has merely failed.
    return ErrorClass.RETRYABLE if error_class is ErrorClass.CRASH else error_class


def decide_settlement(
    claim: Claim,
    result: AttemptResult,
    *policies: RetryPolicy | None,
    draw: float,
    max_crashes: int = MAX_CRASHES,
    log: str | None = None,
    metadata: bytes | None = None,
    spent: int = 0,
) -> Settlement:
    """Decide what follows from a result. `log` and `metadata` are the handler's, None if it wrote none.

    `spent` is the sum of what the handler has reported, in millionths.

    `policies` are ordered from the most specific to the least; `draw`, 0 to 1, places the jitter. An orderly
    end clears suspicion (S39). Only failures are compared with `max_attempts` (S24, S25). `max_crashes` of
    a job's own end it (S40).
    """
    job = claim.job
    has_succeeded = isinstance(result, Succeeded)
    base = Settlement(
        id=job.id,
        fence=claim.fence,
        event=Event.SUCCEED if has_succeeded else Event.HAND_BACK,
        outcome="succeeded" if has_succeeded else "returned",
        failures=job.failures,
        crashes=job.crashes,
        snoozes=job.snoozes,
        log=log,
        metadata=metadata,
        spent=spent,
        result=result.result if isinstance(result, Succeeded) else None,
    )
    match result:
        case Succeeded(dropped=None):
            return base
        case Succeeded():
            # An empty result reads as one that is no longer stored (S34); the attempt says why.
            return _replace(base, result=b"", failure=result.dropped)
        case Failed():
            return _failed(claim, result, base, policies, draw, max_crashes)
        case PermanentFailure():
            failure = marked(job.task, result.failure)
            return _dead(
                base, Event.FAIL, because(Because.FAILED, failure.message), failure, job.failures + 1
            )
        case Snoozed():
            return _snoozed(job, result, base)
        case Cancelled():
            reason = because(result.because, result.reason)
            return _replace(base, event=Event.OBEY_CANCEL, outcome="cancelled", because=reason)
        case HandedBack():
            # A suspect that was not started remains one.
            return _replace(
                base,
                is_suspect=job.is_suspect,
                crashes_alone=job.crashes_alone,
                is_unstarted=result.is_unstarted,
            )
        case _:
            return _unknown(job, result, base)


def _snoozed(job: JobRecord, result: Snoozed, base: Settlement) -> Settlement:
    is_own = result.because is Because.SNOOZE
    if is_own and job.snoozes >= MAX_SNOOZES:
        event, delay = Event.EXHAUST, 0
        reason = because(Because.EXHAUSTED, f"snoozed more than {MAX_SNOOZES} times")
    else:
        event, delay = Event.SNOOZE, result.delay
        reason = because(result.because, result.reason)
    snoozes = job.snoozes + is_own
    return _replace(base, event=event, outcome="snoozed", because=reason, delay=delay, snoozes=snoozes)


def _failed(
    claim: Claim,
    result: Failed,
    base: Settlement,
    policies: tuple[RetryPolicy | None, ...],
    draw: float,
    max_crashes: int,
) -> Settlement:
    job, failure = claim.job, marked(claim.job.task, result.failure)
    failures = job.failures + 1
    if failure.error_class is ErrorClass.CRASH:
        # Its own child died under it while the worker lived: nobody else can be the cause.
        crashes, own = job.crashes + 1, job.crashes_alone + 1
        base = _replace(base, crashes=crashes, crashes_alone=own, is_suspect=True)
        reason = _reason_to_end(job, crashes, own, max_crashes)
        if reason is not None:
            return _dead(base, Event.EXHAUST, reason, failure, failures)
    if failure.error_class is ErrorClass.STUCK:
        return _dead(base, Event.STUCK, because(Because.STUCK, failure.message), failure, failures)
    if failure.error_class not in RETRIED:
        return _dead(base, Event.FAIL, because(Because.FAILED, failure.message), failure, failures)
    backoff = backoff_for(failure.error_class, *policies)
    if failures >= job.max_attempts or backoff.gives_up:
        return _dead(base, Event.EXHAUST, because(Because.EXHAUSTED, failure.message), failure, failures)
    return _replace(
        base,
        event=Event.RETRY,
        outcome="failed",
        because=because(Because.RETRY, f"{failure.error_class}: {failure.message}"),
        delay=backoff.micros(failures, draw) if result.after is None else result.after,
        failures=failures,
        failure=failure,
    )


def _dead(base: Settlement, event: Event, reason: str, failure: Failure, failures: int) -> Settlement:
    return _replace(base, event=event, outcome="failed", because=reason, failure=failure, failures=failures)


def _unknown(job: JobRecord, result: Unknown, base: Settlement) -> Settlement:
    if result.newest is None:
        reason = because(Because.UNKNOWN_TASK)
        failure = Failure(ErrorClass.UNKNOWN_TASK, "UnknownTask", f"no worker knows task {job.task}")
    else:
        detail = f"it is of version {job.version}, and the worker knows {result.newest}"
        reason = because(Because.UNKNOWN_VERSION, detail)
        message = f"no worker knows version {job.version} of task {job.task}"
        failure = Failure(ErrorClass.UNKNOWN_TASK, "UnknownVersion", message)
    if result.unseen_for >= _UNKNOWN_FOR:
        reason = because(Because.FAILED, failure.message)
        return _dead(base, Event.FAIL, reason, marked(job.task, failure), job.failures)
    doublings = 0 if result.is_known_elsewhere else unknown_streak(job.attempts)
    return _replace(
        base,
        event=Event.SNOOZE,
        because=reason,
        delay=min(_UNKNOWN_FIRST << doublings, _UNKNOWN_LONGEST),
        failure=failure,
        is_suspect=job.is_suspect,
        crashes_alone=job.crashes_alone,
    )


def unknown_streak(attempts: tuple[AttemptRecord, ...]) -> int:
    """Count the last attempts in a row that ended because the task or its version was unknown."""
    count = 0
    for attempt in reversed(attempts):
        if attempt.failure is None or attempt.failure.error_class is not ErrorClass.UNKNOWN_TASK:
            break
        count += 1
    return count


def _reason_to_end(job: JobRecord, crashes: int, crashes_alone: int, max_crashes: int) -> str | None:
    """Return why a job that crashed must not run again, even with attempts left; None if it may."""
    if job.at_most_once:
        return because(Because.LOST, "the task runs at most once")
    if is_poison(crashes, crashes_alone, max_crashes):
        return because(Because.EXHAUSTED, f"crashed {crashes} times")
    return None


def is_poison(crashes: int, crashes_alone: int, max_crashes: int = MAX_CRASHES) -> bool:
    """Whether a job crashed too often (S40): the last two were its own, or there were `MAX_LOSSES` in all.

    >>> is_poison(3, 2), is_poison(3, 1), is_poison(2, 2), is_poison(5, 0)
    (True, False, False, True)
    """
    is_its_own = crashes >= max_crashes and crashes_alone >= min(2, max_crashes)
    return is_its_own or crashes >= MAX_LOSSES


def reconcile(job: JobRecord, settlement: Settlement, now: Instant) -> Settlement:
    """Correct a settlement by what the store knows: a cancel that was asked for, an expiry.

    A handler that returned has succeeded, cancel or not; any other end of a cancelled job is cancelled (S30).
    A retry that would be due after the expiry is dead instead, with the class of its failure (S21).
    """
    if job.is_cancel_asked and settlement.event is not Event.SUCCEED:
        # The reason of whoever asked was stored with the flag and overrules the handler's.
        return _replace(
            settlement,
            event=Event.OBEY_CANCEL,
            outcome="cancelled",
            because=job.because,
            delay=0,
            is_unstarted=False,
        )
    if settlement.event is Event.RETRY and is_expired(job.expires_at, now + settlement.delay):
        reason = because(Because.EXPIRED, "the next attempt would be too late")
        return _replace(settlement, event=Event.EXHAUST, because=reason, delay=0)
    return settlement


class LeaseLoss(msgspec.Struct, frozen=True):
    """What becomes of a job whose lease has expired. Its failures stay; the loss is not its own (S39)."""

    state: State
    because: str | None
    crashes: int
    failure: Failure
    outcome: AttemptOutcome = "lost"


def lose_lease(job: JobRecord) -> LeaseLoss:
    """Decide what becomes of a running job whose lease has expired (S25, S30, S39, S40, S63).

    Its worker died or could not renew, and any of its jobs may be the cause, or none. So the loss is a crash,
    but neither a failure nor the job's own.
    """
    crashes = job.crashes + 1
    failure = Failure(ErrorClass.CRASH, "LostLease", f"worker {job.worker} stopped renewing its lease")
    reason = _reason_to_end(job, crashes, 0, MAX_CRASHES)
    state = State.READY if reason is None else State.DEAD
    if job.is_cancel_asked:
        state, reason = State.CANCELLED, job.because
    return LeaseLoss(state, reason, crashes, marked(job.task, failure))
