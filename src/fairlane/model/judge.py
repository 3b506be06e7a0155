"""Decide what a finished attempt means. Knows no clock, no store, no asyncio.

`interpret` turns what the handler did into an `Ending`; `judge` turns an ending into the settlement that a
store applies; `heed` is the part of the decision that needs the store's own facts at that instant (a cancel
asked meanwhile, the job's expiry); `lose` is the same for a claim whose lease ran out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from fairlane.model.failure import RETRIED, Classifier, ClassMap, ErrorClass, Failure, classify, describe
from fairlane.model.instants import HOUR, SECOND, Instant, Micros, to_micros
from fairlane.model.job import AttemptOutcome, AttemptRecord, Claim, JobRecord, Settlement
from fairlane.model.lifecycle import Because, Event, State, because, is_expired
from fairlane.model.outcome import Cancel, Fail, Outcome, Retry, Snooze
from fairlane.model.retry import RetryPolicy, backoff_for

MOST_SNOOZES: Final = 1_000
MAX_CRASHES: Final = 3

_UNKNOWN_FIRST: Final[Micros] = 5 * SECOND
_UNKNOWN_LONGEST: Final[Micros] = 60 * SECOND
_UNKNOWN_FOR: Final[Micros] = HOUR


class Succeeded(msgspec.Struct, frozen=True):
    """The handler returned; the result is encoded already, or `dropped` says why it could not be kept."""

    result: bytes | None = None
    dropped: Failure | None = None


class Failed(msgspec.Struct, frozen=True):
    """The attempt failed: an error, a timeout, a crash of its child, or `Retry`, which may name a delay.

    `classifier_error` is what the task's classifier itself raised, for the worker to log (S27).
    """

    failure: Failure
    after: Micros | None = None
    classifier_error: str | None = None


class Snoozed(msgspec.Struct, frozen=True):
    """The handler asked to come back, or an open breaker sent it away."""

    delay: Micros
    reason: str = ""
    word: Because = Because.SNOOZE


class Ruined(msgspec.Struct, frozen=True):
    """Dead at once: `Fail`, a payload that cannot be read, a result that cannot be kept."""

    failure: Failure


class Cancelled(msgspec.Struct, frozen=True):
    """The handler raised `Cancel`, or left after being asked to."""

    reason: str = ""
    word: Because = Because.CHOSEN


class HandedBack(msgspec.Struct, frozen=True):
    """The worker gives the claim back: not started, or told to requeue at shutdown."""


class Unknown(msgspec.Struct, frozen=True):
    """This worker does not know the task in the job's version or a newer one; no live worker has for so long.

    `newest` is the newest version that it does know; None if it does not know the task at all. If it
    `is_known_elsewhere`, a live worker can run the job, and the wait for that one does not grow.
    """

    unseen_for: Micros = 0
    newest: int | None = None
    is_known_elsewhere: bool = False


Ending: TypeAlias = Succeeded | Failed | Snoozed | Ruined | Cancelled | HandedBack | Unknown


def interpret(
    said: BaseException, classifier: Classifier | None, maps: Iterable[ClassMap], now: Instant = 0
) -> Ending:
    """Read an exception, or an `Outcome` that was returned, as an ending (S27, S28).

    `now` is the instant from which a date in a `Retry` is counted.

    >>> interpret(Snooze(5), None, [])
    Snoozed(delay=5000000, reason='', word=<Because.SNOOZE: 'snooze'>)
    """
    match said:
        case Retry():
            return Failed(describe(said, _survived(said.error_class)), said.delay(now))
        case Snooze():
            return Snoozed(to_micros(said.delay), said.reason)
        case Fail():
            return Ruined(describe(said, said.error_class))
        case Cancel():
            return Cancelled(said.reason)
        case Outcome():
            return Failed(describe(said, ErrorClass.RETRYABLE))
        case _:
            found = classify(said, classifier, maps)
            failure = describe(said, _survived(found.error_class))
            return Failed(failure, classifier_error=found.classifier_error)


def _survived(error_class: ErrorClass) -> ErrorClass:
    # Only a death counts as a crash (S40): who lives to tell of one has merely failed, and accuses nobody.
    return ErrorClass.RETRYABLE if error_class is ErrorClass.CRASH else error_class


def judge(
    claim: Claim,
    ending: Ending,
    *policies: RetryPolicy | None,
    draw: float,
    max_crashes: int = MAX_CRASHES,
    log: str | None = None,
) -> Settlement:
    """Decide what follows. `policies` from the most specific to the least; `draw` places the jitter.

    An orderly end clears suspicion (S39). Only failures are compared with `max_attempts` (S24, S25).
    """
    job = claim.job
    has_succeeded = isinstance(ending, Succeeded)
    base = Settlement(
        id=job.id,
        fence=claim.fence,
        event=Event.SUCCEED if has_succeeded else Event.HAND_BACK,
        outcome="succeeded" if has_succeeded else "returned",
        failures=job.failures,
        crashes=job.crashes,
        snoozes=job.snoozes,
        log=log,
        result=ending.result if isinstance(ending, Succeeded) else None,
    )
    with_ = msgspec.structs.replace
    match ending:
        case Succeeded(dropped=None):
            return base
        case Succeeded():
            # Empty is what a result is that is kept no longer (S34); the attempt says why.
            return with_(base, result=b"", failure=ending.dropped)
        case Failed():
            return _failed(claim, ending, base, policies, draw, max_crashes)
        case Ruined():
            word = because(Because.FAILED, ending.failure.message)
            return _dead(base, Event.FAIL, word, ending.failure, job.failures + 1)
        case Snoozed(word=Because.SNOOZE) if job.snoozes >= MOST_SNOOZES:
            word = because(Because.EXHAUSTED, f"snoozed more than {MOST_SNOOZES} times")
            return with_(base, event=Event.EXHAUST, outcome="snoozed", because=word, snoozes=job.snoozes + 1)
        case Snoozed():
            counted = job.snoozes + (ending.word is Because.SNOOZE)
            word = because(ending.word, ending.reason)
            return with_(
                base,
                event=Event.SNOOZE,
                outcome="snoozed",
                because=word,
                delay=ending.delay,
                snoozes=counted,
            )
        case Cancelled():
            word = because(ending.word, ending.reason)
            return with_(base, event=Event.OBEY_CANCEL, outcome="cancelled", because=word)
        case HandedBack():
            # A suspect that was never started is still one.
            return with_(base, is_suspect=job.is_suspect, crashes_alone=job.crashes_alone)
        case _:
            return _unknown(job, ending, base)


def _failed(
    claim: Claim,
    ending: Failed,
    base: Settlement,
    policies: tuple[RetryPolicy | None, ...],
    draw: float,
    max_crashes: int,
) -> Settlement:
    job, failure = claim.job, ending.failure
    failures = job.failures + 1
    if failure.error_class is ErrorClass.CRASH:
        alone = job.crashes_alone + 1 if claim.is_alone else 0
        base = msgspec.structs.replace(base, crashes=job.crashes + 1, crashes_alone=alone, is_suspect=True)
        word = _last_word(job, base.crashes, alone, max_crashes)
        if word is not None:
            return _dead(base, Event.EXHAUST, word, failure, failures)
    if failure.error_class is ErrorClass.STUCK:
        return _dead(base, Event.STUCK, because(Because.STUCK, failure.message), failure, failures)
    if failure.error_class not in RETRIED:
        return _dead(base, Event.FAIL, because(Because.FAILED, failure.message), failure, failures)
    backoff = backoff_for(failure.error_class, *policies)
    if failures >= job.max_attempts or backoff.gives_up:
        return _dead(base, Event.EXHAUST, because(Because.EXHAUSTED, failure.message), failure, failures)
    delay = backoff.micros(failures, draw) if ending.after is None else ending.after
    word = because(Because.RETRY, f"{failure.error_class}: {failure.message}")
    return msgspec.structs.replace(
        base,
        event=Event.RETRY,
        outcome="failed",
        because=word,
        delay=delay,
        failures=failures,
        failure=failure,
    )


def _dead(base: Settlement, event: Event, word: str, failure: Failure, failures: int) -> Settlement:
    return msgspec.structs.replace(
        base, event=event, outcome="failed", because=word, failure=failure, failures=failures
    )


def _unknown(job: JobRecord, ending: Unknown, base: Settlement) -> Settlement:
    if ending.newest is None:
        word = because(Because.UNKNOWN_TASK)
        failure = Failure(ErrorClass.UNKNOWN_TASK, "UnknownTask", f"no worker knows task {job.task}")
    else:
        detail = f"it is of version {job.version}, and the worker knows {ending.newest}"
        word = because(Because.UNKNOWN_VERSION, detail)
        message = f"no worker knows version {job.version} of task {job.task}"
        failure = Failure(ErrorClass.UNKNOWN_TASK, "UnknownVersion", message)
    if ending.unseen_for >= _UNKNOWN_FOR:
        return _dead(base, Event.FAIL, because(Because.FAILED, failure.message), failure, job.failures)
    doublings = 0 if ending.is_known_elsewhere else unknown_in_a_row(job.attempts)
    delay = min(_UNKNOWN_FIRST << doublings, _UNKNOWN_LONGEST)
    return msgspec.structs.replace(
        base,
        event=Event.SNOOZE,
        because=word,
        delay=delay,
        failure=failure,
        is_suspect=job.is_suspect,
        crashes_alone=job.crashes_alone,
    )


def unknown_in_a_row(attempts: tuple[AttemptRecord, ...]) -> int:
    """Count how often the job was handed back last because its task, or its version, was not known."""
    count = 0
    for attempt in reversed(attempts):
        if attempt.failure is None or attempt.failure.error_class is not ErrorClass.UNKNOWN_TASK:
            break
        count += 1
    return count


def _last_word(job: JobRecord, crashes: int, crashes_alone: int, max_crashes: int) -> str | None:
    """Say why a job that died under its worker must not run again, whatever attempts are left."""
    if job.at_most_once:
        return because(Because.LOST, "the task runs at most once")
    if is_poison(crashes, crashes_alone, max_crashes):
        return because(Because.EXHAUSTED, f"crashed {crashes} times")
    return None


def is_poison(crashes: int, crashes_alone: int, max_crashes: int) -> bool:
    """Whether a job killed its worker too often (S40): the last two must have been while it ran alone.

    >>> is_poison(3, 2, 3), is_poison(3, 1, 3), is_poison(2, 2, 3)
    (True, False, False)
    """
    return crashes >= max_crashes and crashes_alone >= min(2, max_crashes)


def heed(job: JobRecord, settlement: Settlement, now: Instant) -> Settlement:
    """Let the store's own facts overrule a settlement: a cancel asked meanwhile, an expiry reached.

    A handler that returned normally has succeeded, cancel or not; any other end is cancelled (S30).
    A retry that would fall after the expiry is dead instead, with the class of its failure (S21).
    """
    if job.is_cancel_asked and settlement.event is not Event.SUCCEED:
        # The reason of whoever asked was stored with the flag; it beats the handler's.
        return msgspec.structs.replace(
            settlement, event=Event.OBEY_CANCEL, outcome="cancelled", because=job.because, delay=0
        )
    if settlement.event is Event.RETRY and is_expired(job.expires_at, now + settlement.delay):
        word = because(Because.EXPIRED, "the next attempt would be too late")
        return msgspec.structs.replace(settlement, event=Event.EXHAUST, because=word, delay=0)
    return settlement


class Loss(msgspec.Struct, frozen=True):
    """What a lost lease makes of a job: where it goes, and its new counters."""

    state: State
    because: str | None
    failures: int
    crashes: int
    crashes_alone: int
    failure: Failure
    outcome: AttemptOutcome = "lost"


def lose(job: JobRecord, *, was_alone: bool, max_crashes: int = MAX_CRASHES) -> Loss:
    """Decide what becomes of a running job whose lease ran out (S25, S30, S39, S40, S63)."""
    failures, crashes = job.failures + 1, job.crashes + 1
    alone = job.crashes_alone + 1 if was_alone else 0
    failure = Failure(ErrorClass.CRASH, "LostLease", f"worker {job.worker} stopped renewing its lease")
    word = _last_word(job, crashes, alone, max_crashes)
    if word is None and failures >= job.max_attempts:
        word = because(Because.EXHAUSTED, failure.message)
    state = State.READY if word is None else State.DEAD
    if job.is_cancel_asked:
        state, word = State.CANCELLED, job.because
    return Loss(state, word, failures, crashes, alone, failure)
