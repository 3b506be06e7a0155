"""What a finished attempt means: every ending in every situation, and the counters afterwards (S24-S33)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.model.failure import BUILT_IN, RETRIED, ClassMap, ErrorClass, Failure
from fairlane.model.instants import DAY, HOUR, SECOND
from fairlane.model.job import AttemptRecord, Claim, JobRecord, Settlement
from fairlane.model.lifecycle.states import ENDINGS, Because, Event, State, target
from fairlane.model.retry.backoff import LONGEST_DELAY, Backoff
from fairlane.model.retry.decision import (
    MAX_LOSSES,
    MAX_SNOOZES,
    AttemptResult,
    Cancelled,
    Failed,
    HandedBack,
    PermanentFailure,
    Snoozed,
    Succeeded,
    Unknown,
    decide_settlement,
    interpret,
    is_poison,
    lose_lease,
    reconcile,
    unknown_streak,
)
from fairlane.model.retry.outcome import Cancel, Fail, Outcome, Retry, Skip, Snooze

NOW = 1_772_366_400 * SECOND
TEN = Backoff.delays(10)


def job(**values: Any) -> JobRecord:
    """Build a running job of which a test changes what it is about."""
    running: dict[str, Any] = {
        "id": UUID(int=1),
        "tenant": "acme",
        "queue": "bulk",
        "task": "send",
        "state": State.RUNNING,
        "because": None,
        "payload": b"",
        "checksum": 0,
        "version": 1,
        "priority": 0,
        "enqueued_at": NOW,
        "run_at": NOW,
        "sort_key": NOW,
        "expires_at": None,
        "settled_at": None,
        "idempotency_key": "1",
        "dedup_key": None,
        "dedup_until": "settled",
        "correlation_id": "1",
        "parent_id": None,
        "max_attempts": 5,
        "timeout": None,
        "at_most_once": False,
        "tags": (),
        "metadata": b"{}",
        "created_by": None,
        "attempt": 1,
        "worker": "w1",
    }
    return JobRecord(**{**running, **values})


def settled(ending: AttemptResult, *policies: Any, draw: float = 0.5, **values: Any) -> Settlement:
    """Judge an ending of a job with these values, on a list of one delay of ten seconds by default."""
    return decide_settlement(Claim(job(**values), 7, 0), ending, *(policies or (TEN,)), draw=draw)


def failed(error_class: ErrorClass = ErrorClass.RETRYABLE, after: int | None = None) -> Failed:
    """Return the ending of an attempt that failed."""
    return Failed(Failure(error_class, "ValueError", "boom"), after)


RUINED = PermanentFailure(Failure(ErrorClass.UNDECODABLE, "ValueError", "boom"))

# ── every ending ─────────────────────────────────────────────────────────────

# ending, event with attempts left, event at the last attempt, outcome of the attempt, first word of because
TABLE: dict[str, tuple[AttemptResult, Event, Event, str, str | None]] = {
    "succeeded": (Succeeded(b"1"), Event.SUCCEED, Event.SUCCEED, "succeeded", None),
    "transient": (failed(ErrorClass.TRANSIENT), Event.RETRY, Event.EXHAUST, "failed", "retry"),
    "retryable": (failed(), Event.RETRY, Event.EXHAUST, "failed", "retry"),
    "rate limited": (failed(ErrorClass.RATE_LIMITED), Event.RETRY, Event.EXHAUST, "failed", "retry"),
    "timeout": (failed(ErrorClass.TIMEOUT), Event.RETRY, Event.EXHAUST, "failed", "retry"),
    "crash": (failed(ErrorClass.CRASH), Event.RETRY, Event.EXHAUST, "failed", "retry"),
    "retry after": (failed(after=5), Event.RETRY, Event.EXHAUST, "failed", "retry"),
    "non-retryable": (failed(ErrorClass.NON_RETRYABLE), Event.FAIL, Event.FAIL, "failed", "failed"),
    "budget": (failed(ErrorClass.BUDGET), Event.FAIL, Event.FAIL, "failed", "failed"),
    "undecodable": (failed(ErrorClass.UNDECODABLE), Event.FAIL, Event.FAIL, "failed", "failed"),
    "unknown task": (failed(ErrorClass.UNKNOWN_TASK), Event.FAIL, Event.FAIL, "failed", "failed"),
    "stuck": (failed(ErrorClass.STUCK), Event.STUCK, Event.STUCK, "failed", "stuck"),
    "ruined": (RUINED, Event.FAIL, Event.FAIL, "failed", "failed"),
    "snoozed": (Snoozed(5), Event.SNOOZE, Event.SNOOZE, "snoozed", "snooze"),
    "breaker": (Snoozed(5, "", Because.BREAKER), Event.SNOOZE, Event.SNOOZE, "snoozed", "breaker"),
    "cancelled": (Cancelled(), Event.OBEY_CANCEL, Event.OBEY_CANCEL, "cancelled", "chosen"),
    "asked": (Cancelled("", Because.ASKED), Event.OBEY_CANCEL, Event.OBEY_CANCEL, "cancelled", "asked"),
    "skipped": (Cancelled("", Because.SKIPPED), Event.OBEY_CANCEL, Event.OBEY_CANCEL, "cancelled", "skipped"),
    "handed back": (HandedBack(), Event.HAND_BACK, Event.HAND_BACK, "returned", None),
    "unknown": (Unknown(), Event.SNOOZE, Event.SNOOZE, "returned", "unknown_task"),
    "newer": (Unknown(newest=1), Event.SNOOZE, Event.SNOOZE, "returned", "unknown_version"),
    "unseen": (Unknown(HOUR), Event.FAIL, Event.FAIL, "failed", "failed"),
}
ROWS = pytest.mark.parametrize("name", TABLE)


@ROWS
def test_with_attempts_left_each_ending_has_its_event_outcome_and_reason(name: str) -> None:
    """The settlement carries the claim's fence and the attempt's log."""
    ending, event, _, outcome, word = TABLE[name]
    found = decide_settlement(Claim(job(), 7, 0), ending, TEN, draw=0.5, log="lines")
    assert (found.event, found.outcome) == (event, outcome)
    assert (found.because or "").partition(":")[0] == (word or "")
    assert (found.id, found.fence, found.log) == (UUID(int=1), 7, "lines")


@ROWS
def test_at_the_last_attempt_only_a_failure_is_the_end(name: str) -> None:
    """The fifth failure of five; snoozes and hand-backs count for nothing (S25)."""
    ending, _, event, _, _ = TABLE[name]
    assert settled(ending, failures=4, attempt=900).event is event


@ROWS
def test_a_cancel_asked_meanwhile_overrules_everything_but_success(name: str) -> None:
    """Never retried, with the reason of whoever asked (S30)."""
    ending, event, _, _, _ = TABLE[name]
    record = job(is_cancel_asked=True, because="asked: too late")
    found = reconcile(record, decide_settlement(Claim(record, 7, 0), ending, TEN, draw=0.5), NOW)
    if event is Event.SUCCEED:
        assert (found.event, found.outcome, found.result) == (Event.SUCCEED, "succeeded", b"1")
    else:
        assert (found.event, found.outcome, found.delay) == (Event.OBEY_CANCEL, "cancelled", 0)
        assert found.because == "asked: too late"


@ROWS
@pytest.mark.parametrize(("slack", "is_too_late"), [(1, False), (0, True), (-1, True)])
def test_only_a_retry_that_would_fall_after_the_expiry_is_dead_instead(
    name: str, slack: int, is_too_late: bool
) -> None:
    """With the class of its failure; the instant of the expiry is too late (S21)."""
    ending, event, _, _, _ = TABLE[name]
    asked = settled(ending)
    found = reconcile(job(expires_at=NOW + asked.delay + slack), asked, NOW)
    if event is Event.RETRY and is_too_late:
        assert (found.event, found.outcome, found.delay) == (Event.EXHAUST, "failed", 0)
        assert found.because == "expired: the next attempt would be too late"
        assert found.failure == asked.failure
        assert found.failures == 1
    else:
        assert found == asked


@ROWS
def test_without_cancel_and_expiry_the_store_applies_what_was_decided(name: str) -> None:
    """`reconcile` changes nothing by itself."""
    asked = settled(TABLE[name][0])
    assert reconcile(job(), asked, NOW) is asked


# ── counters ─────────────────────────────────────────────────────────────────


# ending → failures, crashes, crashes alone, snoozes, suspect; before it all is 1, 2, 1, 3, suspect
COUNTERS: dict[str, tuple[int, int, int, int, bool]] = {
    "succeeded": (1, 2, 0, 3, False),
    "retryable": (2, 2, 0, 3, False),
    "timeout": (2, 2, 0, 3, False),
    "non-retryable": (2, 2, 0, 3, False),
    "stuck": (2, 2, 0, 3, False),
    "ruined": (2, 2, 0, 3, False),
    "crash": (2, 3, 2, 3, True),
    "snoozed": (1, 2, 0, 4, False),
    "breaker": (1, 2, 0, 3, False),
    "cancelled": (1, 2, 0, 3, False),
    "handed back": (1, 2, 1, 3, True),
    "unknown": (1, 2, 1, 3, True),
    "unseen": (1, 2, 0, 3, False),
}


@pytest.mark.parametrize(("name", "expected"), COUNTERS.items())
def test_each_ending_moves_its_counters_and_no_others(
    name: str, expected: tuple[int, int, int, int, bool]
) -> None:
    """Failures count what failed; an orderly end clears suspicion, a claim never started does not (S39)."""
    found = settled(TABLE[name][0], failures=1, crashes=2, crashes_alone=1, snoozes=3, is_suspect=True)
    assert (found.failures, found.crashes, found.crashes_alone, found.snoozes, found.is_suspect) == expected


@ROWS
def test_a_job_that_may_run_once_never_runs_again_after_a_failure(name: str) -> None:
    """`max_attempts=1` (S25)."""
    ending, event, last, _, _ = TABLE[name]
    found = settled(ending, max_attempts=1)
    assert found.event is last
    assert (event is Event.RETRY) == (found.event is Event.EXHAUST)


def test_three_retries_are_four_executions() -> None:
    """Seed A's queues and seed B's walk-through: dead on the fourth failure."""
    record = job(max_attempts=4)
    events = []
    for _ in range(4):
        found = decide_settlement(Claim(record, 7, 0), failed(), Backoff.delays(60, 300, 900), draw=0.0)
        events.append((found.event, found.delay // SECOND))
        record = msgspec.structs.replace(record, failures=found.failures)
    assert events == [(Event.RETRY, 60), (Event.RETRY, 300), (Event.RETRY, 900), (Event.EXHAUST, 0)]


def test_a_settlement_says_how_long_never_when() -> None:
    """The delay follows from the failures so far, the policy of the class and the draw (S1, S26)."""
    policy = {ErrorClass.RATE_LIMITED: Backoff.exponential(60, jitter=0.2)}
    assert settled(failed(ErrorClass.RATE_LIMITED), policy, TEN, draw=0.0).delay == 48 * SECOND
    assert settled(failed(ErrorClass.RATE_LIMITED), policy, TEN, failures=1).delay == 120 * SECOND
    assert settled(failed(ErrorClass.TIMEOUT), policy, TEN).delay == 10 * SECOND
    assert settled(failed(after=3 * SECOND), policy, TEN).delay == 3 * SECOND
    assert settled(failed(after=0), policy, TEN).delay == 0


def test_a_policy_that_never_retries_gives_up_at_the_first_failure() -> None:
    """Even where the handler asked for a time; for the classes it speaks of."""
    assert settled(failed(), Backoff.never()).event is Event.EXHAUST
    assert settled(failed(after=5), Backoff.never()).event is Event.EXHAUST
    by_class = {ErrorClass.TIMEOUT: Backoff.never()}
    assert settled(failed(ErrorClass.TIMEOUT), by_class).event is Event.EXHAUST
    assert settled(failed(), by_class).event is Event.RETRY


def test_the_reason_of_a_retry_names_class_and_message() -> None:
    """What `explain` shows."""
    assert settled(failed(ErrorClass.TIMEOUT)).because == "retry: timeout: boom"
    assert settled(failed(), failures=4).because == "exhausted: boom"
    assert settled(Snoozed(5, "too early")).because == "snooze: too early"


@pytest.mark.parametrize("attempts_left", [1, 4, 99])
def test_fail_and_cancel_end_the_job_whatever_attempts_are_left(attempts_left: int) -> None:
    """`Fail` is dead at once, `Cancel` leaves no dead letter (S28)."""
    dead = settled(interpret(Fail("gone"), None, []), max_attempts=attempts_left + 1)
    assert (dead.event, dead.because) == (Event.FAIL, "failed: gone")
    assert target(dead.event) is State.DEAD
    assert dead.failure is not None
    assert dead.failure.error_class is ErrorClass.NON_RETRYABLE
    left = settled(interpret(Cancel("not wanted"), None, []), max_attempts=attempts_left + 1)
    assert (left.event, left.because, left.failure) == (Event.OBEY_CANCEL, "chosen: not wanted", None)


# ── snoozes ──────────────────────────────────────────────────────────────────


def test_a_thousand_snoozes_are_allowed_and_one_more_is_the_end() -> None:
    """No failure is counted on the way, and the backoff keeps its position (S29)."""
    record = job(failures=2)
    for number in range(MAX_SNOOZES):
        found = decide_settlement(Claim(record, 7, 0), Snoozed(SECOND), draw=0.5)
        assert (found.event, found.snoozes, found.failures) == (Event.SNOOZE, number + 1, 2)
        record = msgspec.structs.replace(record, snoozes=found.snoozes)
    found = decide_settlement(Claim(record, 7, 0), Snoozed(SECOND), draw=0.5)
    assert (found.event, found.outcome, found.delay) == (Event.EXHAUST, "snoozed", 0)
    assert found.because == "exhausted: snoozed more than 1000 times"
    assert (found.snoozes, found.failures) == (1_001, 2)
    assert MAX_SNOOZES == 1_000


def test_an_open_breaker_is_no_snooze_of_the_jobs_own() -> None:
    """It neither counts as one nor is the one too many (S24)."""
    found = settled(Snoozed(SECOND, "maps", Because.BREAKER), snoozes=MAX_SNOOZES)
    assert (found.event, found.snoozes, found.because) == (Event.SNOOZE, MAX_SNOOZES, "breaker: maps")


# ── unknown tasks ────────────────────────────────────────────────────────────


def returned(error_class: ErrorClass | None) -> AttemptRecord:
    """Return an ended attempt with or without a failure."""
    failure = None if error_class is None else Failure(error_class, "x", "x")
    return AttemptRecord(1, "w1", 0, 1, "returned", failure)


def test_an_unknown_task_waits_five_seconds_doubling_to_a_minute() -> None:
    """Counted in the history, which keeps ten (S33)."""
    delays, history = [], ()
    for _ in range(14):
        found = settled(Unknown(), attempts=history)
        delays.append(found.delay // SECOND)
        record = AttemptRecord(1, "w1", 0, 1, found.outcome, found.failure)
        history = (*history, record)[-10:]  # type: ignore[assignment]
    assert delays == [5, 10, 20, 40, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60]


def test_what_a_live_worker_knows_waits_five_seconds_each_time() -> None:
    """The job is meant for that one, and has only met the wrong one (S33)."""
    history = tuple(returned(ErrorClass.UNKNOWN_TASK) for _ in range(10))
    assert settled(Unknown(is_known_elsewhere=True), attempts=history).delay == 5 * SECOND


@pytest.mark.parametrize(
    ("classes", "in_a_row"),
    [
        ([], 0),
        (["unknown_task"], 1),
        (["unknown_task", "unknown_task"], 2),
        (["unknown_task", "retryable"], 0),
        (["unknown_task", None], 0),
        (["unknown_task", None, "unknown_task"], 1),
        (["timeout", "unknown_task", "unknown_task"], 2),
    ],
)
def test_the_doubling_begins_anew_after_any_other_attempt(classes: list[str | None], in_a_row: int) -> None:
    """Only the last ones in a row count."""
    history = tuple(returned(None if one is None else ErrorClass(one)) for one in classes)
    assert unknown_streak(history) == in_a_row


@pytest.mark.parametrize(
    ("unseen", "event"), [(0, "snooze"), (HOUR - 1, "snooze"), (HOUR, "fail"), (DAY, "fail")]
)
def test_a_task_that_nobody_knew_for_an_hour_is_dead(unseen: int, event: str) -> None:
    """Of class `unknown_task`, without a failure of the job's own."""
    found = settled(Unknown(unseen), failures=1)
    assert found.event == event
    assert found.failures == 1
    assert found.failure is not None
    assert found.failure.error_class is ErrorClass.UNKNOWN_TASK
    assert found.failure.message == "no worker knows task send"


@pytest.mark.parametrize(("unseen", "event"), [(HOUR - 1, "snooze"), (HOUR, "fail")])
def test_a_version_that_this_worker_does_not_know_waits_as_an_unknown_task_does(
    unseen: int, event: str
) -> None:
    """It says which version it is of, and which one the worker knows."""
    found = settled(Unknown(unseen, newest=2), failures=1, version=3)
    assert (found.event, found.failures) == (event, 1)
    assert found.failure is not None
    assert (found.failure.error_class, found.failure.error_type) == (
        ErrorClass.UNKNOWN_TASK,
        "UnknownVersion",
    )
    words = {
        "snooze": "unknown_version: it is of version 3, and the worker knows 2",
        "fail": "failed: no worker knows version 3 of task send",
    }
    assert found.because == words[event]


# ── suspects and poison ──────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("crashes", "own", "most", "is_condemned"),
    [
        (1, 0, 3, False),
        (2, 2, 3, False),
        (3, 0, 3, False),
        (3, 1, 3, False),
        (3, 2, 3, True),
        (3, 3, 3, True),
        (4, 0, 3, False),
        (4, 1, 3, False),
        (4, 2, 3, True),
        (5, 0, 3, True),
        (4, 4, 5, False),
        (5, 5, 5, True),
        (1, 0, 1, False),
        (1, 1, 1, True),
        (2, 1, 2, False),
        (2, 2, 2, True),
    ],
)
def test_poison_is_the_third_crash_if_the_last_two_were_its_own_or_the_fifth_of_any_kind(
    crashes: int, own: int, most: int, is_condemned: bool
) -> None:
    """The number can be set; that the last were its own cannot be left out (S40)."""
    assert is_poison(crashes, own, most) is is_condemned


def after_loss(record: JobRecord) -> JobRecord:
    """Lose the claim of a job, as a store does."""
    loss = lose_lease(record)
    return msgspec.structs.replace(
        record,
        state=loss.state,
        because=loss.because,
        crashes=loss.crashes,
        crashes_alone=0,
        is_suspect=True,
    )


def after_end(record: JobRecord, ending: AttemptResult) -> JobRecord:
    """Settle a job, as a store does."""
    found = decide_settlement(Claim(record, 7, 0), ending, TEN, draw=0.5)
    return msgspec.structs.replace(
        record,
        state=target(found.event),
        because=found.because,
        failures=found.failures,
        crashes=found.crashes,
        crashes_alone=found.crashes_alone,
        is_suspect=found.is_suspect,
    )


CRASH = failed(ErrorClass.CRASH)


def test_a_job_that_kills_its_worker_is_dead_at_the_third_crash() -> None:
    """It is lost once together with others; then its child dies twice while it runs alone."""
    record = after_loss(job())
    assert (record.state, record.is_suspect, record.crashes_alone) == (State.READY, True, 0)
    record = after_end(record, CRASH)
    assert (record.state, record.is_suspect, record.crashes_alone) == (State.DELAYED, True, 1)
    record = after_end(record, CRASH)
    assert (record.state, record.because) == (State.DEAD, "exhausted: crashed 3 times")
    assert record.failures == 2


def test_a_job_whose_own_child_dies_each_time_is_dead_at_the_third() -> None:
    """Its task runs in processes, so that no worker was ever lost with it."""
    record = job()
    for _ in range(3):
        assert record.state is not State.DEAD
        record = after_end(record, CRASH)
    assert (record.state, record.because, record.failures) == (State.DEAD, "exhausted: crashed 3 times", 3)


def test_a_neighbour_of_a_killer_loses_no_attempt_and_an_orderly_end_clears_it() -> None:
    """Losses accuse nobody: four of them, and one that is left runs as if nothing had been (S25, S39)."""
    record = job(max_attempts=1)
    for _ in range(4):
        record = after_loss(record)
        assert (record.state, record.is_suspect, record.failures) == (State.READY, True, 0)
    record = after_end(record, Snoozed(SECOND))
    assert (record.is_suspect, record.crashes_alone, record.crashes) == (False, 0, 4)


def test_a_job_whose_workers_always_die_ends_at_the_fifth_loss() -> None:
    """Where no child can be had, a killer is never proved to be one; it ends all the same (S40)."""
    record = job(max_attempts=100)
    for _ in range(MAX_LOSSES):
        assert record.state is not State.DEAD
        record = after_loss(record)
    assert (record.state, record.because) == (State.DEAD, "exhausted: crashed 5 times")
    assert record.failures == 0


def test_a_loss_between_two_crashes_of_its_own_begins_the_proof_anew() -> None:
    """The worker died, so that the job may not have started at all; the fifth crash ends it anyway."""
    record = job(max_attempts=100)
    for step in (CRASH, None, CRASH, None):
        record = after_loss(record) if step is None else after_end(record, step)
        assert record.state is not State.DEAD
    assert (record.crashes, record.crashes_alone) == (4, 0)
    assert after_end(record, CRASH).because == "exhausted: crashed 5 times"


@pytest.mark.parametrize("name", ["retryable", "snoozed", "breaker", "timeout"])
def test_an_orderly_end_between_two_crashes_begins_the_proof_anew(name: str) -> None:
    """The last two must have been its own, one after the other."""
    record = after_end(after_loss(job(max_attempts=100)), CRASH)
    record = after_end(record, TABLE[name][0])
    assert not record.is_suspect
    record = after_end(record, CRASH)
    assert (record.state, record.crashes) == (State.DELAYED, 3)
    record = after_end(record, CRASH)
    assert (record.state, record.because) == (State.DEAD, "exhausted: crashed 4 times")


@pytest.mark.parametrize("ending", [HandedBack(), HandedBack(is_unstarted=True), Unknown()])
def test_a_suspect_that_never_started_is_still_a_suspect(ending: AttemptResult) -> None:
    """Its next attempt runs alone as well, and the crash before still counts."""
    record = after_end(job(is_suspect=True, crashes=2, crashes_alone=1), ending)
    assert (record.is_suspect, record.crashes_alone) == (True, 1)
    assert after_end(record, CRASH).state is State.DEAD


def test_the_number_of_crashes_can_be_set() -> None:
    """Two instead of three, or four."""
    record = job(crashes=2, crashes_alone=2, max_attempts=100)
    for most, event in ((4, Event.RETRY), (3, Event.EXHAUST), (2, Event.EXHAUST)):
        found = decide_settlement(Claim(record, 7, 0), CRASH, TEN, draw=0.5, max_crashes=most)
        assert found.event is event


def test_only_a_death_counts_as_a_crash() -> None:
    """A handler or classifier that lives to say `crash` has failed, and is no suspect."""
    for raised, classifier in (
        (Retry(error_class=ErrorClass.CRASH), None),
        (ValueError(), lambda _: ErrorClass.CRASH),
    ):
        found = settled(interpret(raised, classifier, []))
        assert (found.event, found.crashes, found.is_suspect) == (Event.RETRY, 0, False)
        assert found.failure is not None
        assert found.failure.error_class is ErrorClass.RETRYABLE


# ── lost leases ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("values", "state", "reason"),
    [
        ({}, State.READY, None),
        ({"failures": 4}, State.READY, None),
        ({"max_attempts": 1}, State.READY, None),
        ({"crashes": 2, "crashes_alone": 2}, State.READY, None),
        ({"crashes": 3}, State.READY, None),
        ({"crashes": 4}, State.DEAD, "exhausted: crashed 5 times"),
        ({"crashes": 4, "crashes_alone": 1}, State.DEAD, "exhausted: crashed 5 times"),
        ({"at_most_once": True}, State.DEAD, "lost: the task runs at most once"),
        ({"at_most_once": True, "crashes": 4}, State.DEAD, "lost: the task runs at most once"),
        ({"is_cancel_asked": True, "because": "asked: x"}, State.CANCELLED, "asked: x"),
        (
            {"is_cancel_asked": True, "because": "asked", "at_most_once": True, "crashes": 4},
            State.CANCELLED,
            "asked",
        ),
    ],
)
def test_a_lost_lease_leads_where_the_rules_say(
    values: dict[str, Any], state: State, reason: str | None
) -> None:
    """Back to ready, unless cancelled, at most once or lost too often (S25, S30, S40, S63)."""
    loss = lose_lease(job(**values))
    assert (loss.state, loss.because, loss.outcome) == (state, reason, "lost")
    assert loss.crashes == values.get("crashes", 0) + 1
    assert loss.failure.error_class is ErrorClass.CRASH


def test_a_task_that_runs_at_most_once_is_dead_when_its_child_dies() -> None:
    """What it had done by then is unknown, as after a lost lease (S63)."""
    found = settled(CRASH, at_most_once=True)
    assert (found.event, found.because) == (Event.EXHAUST, "lost: the task runs at most once")
    assert found.failures == 1


def test_a_task_that_runs_at_most_once_may_be_retried_after_an_orderly_failure() -> None:
    """It was not lost: the handler itself reported how it ended."""
    assert settled(failed(), at_most_once=True).event is Event.RETRY


def test_a_success_whose_result_was_dropped_says_why_and_counts_no_failure() -> None:
    """S34: the result is empty, like one whose retention is over; the attempt has the reason."""
    why = Failure(ErrorClass.NON_RETRYABLE, "ResultDropped", "too large")
    found = settled(Succeeded(None, why), failures=2)
    assert (found.event, found.outcome, found.result, found.failure) == (Event.SUCCEED, "succeeded", b"", why)
    assert (found.failures, found.because) == (2, None)


# ── what handlers say ────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("raised", "after"),
    [
        (Retry(), None),
        (Retry(after=90), 90 * SECOND),
        (Retry(after=timedelta(minutes=2)), 120 * SECOND),
        (Retry(after=0), 0),
        (Retry(after=" 90 "), 90 * SECOND),
        (Retry(after="Thu, 01 Jan 1970 00:02:30 GMT"), 90 * SECOND),
        (Retry(after="Thu, 01 Jan 1970 00:00:30 GMT"), 0),
        (Retry(after="Fri, 31 Dec 9999 23:59:59 GMT"), DAY),
        (Retry(after=timedelta(days=9)), DAY),
        (Retry(after=timedelta.max), DAY),
    ],
)
def test_a_retry_may_name_a_time_that_is_bounded_to_a_day(raised: Retry, after: int | None) -> None:
    """S26: a date counts from the instant at which it is read; one that has passed means at once."""
    ending = interpret(raised, None, [], now=60 * SECOND)
    assert isinstance(ending, Failed)
    assert ending.after == after


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (Snooze(90, "early"), Snoozed(90 * SECOND, "early")),
        (Snooze(timedelta(days=30)), Snoozed(30 * DAY)),
        (Cancel("not wanted"), Cancelled("not wanted")),
        (Skip("it is gone"), Cancelled("it is gone", Because.SKIPPED)),
    ],
)
def test_snooze_and_cancel_are_read_with_their_reason(raised: Outcome, expected: AttemptResult) -> None:
    """A handler's own word for it."""
    assert interpret(raised, None, []) == expected


def test_the_classes_that_outcomes_carry_are_kept() -> None:
    """`Retry` of a class that is not retried is dead; `Fail` of one that is, too."""
    ending = interpret(Retry("quota", error_class=ErrorClass.BUDGET), None, [])
    assert settled(ending).event is Event.FAIL
    ending = interpret(Fail("gone", error_class=ErrorClass.TRANSIENT), None, [])
    assert settled(ending).event is Event.FAIL
    assert isinstance(interpret(Outcome("odd"), None, []), Failed)


def test_an_outcome_is_not_shown_to_the_classifier() -> None:
    """Outcome first, then classifier, then mappings (S27)."""

    def classifier(_: BaseException) -> ErrorClass:
        raise AssertionError

    maps: list[ClassMap] = [{Exception: ErrorClass.NON_RETRYABLE}]
    for raised in (Retry("x"), Outcome("x")):
        ending = interpret(raised, classifier, maps)
        assert isinstance(ending, Failed)
        assert ending.failure.error_class is ErrorClass.RETRYABLE
        assert ending.classifier_error is None


def test_what_a_broken_classifier_raised_is_there_to_be_logged() -> None:
    """It counts as silent for the class."""

    def classifier(_: BaseException) -> ErrorClass:
        raise LookupError("no table")

    ending = interpret(ConnectionError("reset"), classifier, [BUILT_IN])
    assert isinstance(ending, Failed)
    assert (ending.failure.error_class, ending.classifier_error) == (ErrorClass.TRANSIENT, "no table")


@pytest.mark.parametrize(
    "raised", [SystemExit(1), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError(), BaseException()]
)
def test_whatever_a_handler_raises_is_a_retryable_failure_at_worst(raised: BaseException) -> None:
    """The worker lives on (S28)."""
    ending = interpret(raised, None, [BUILT_IN])
    assert isinstance(ending, Failed)
    assert ending.failure.error_class is ErrorClass.RETRYABLE
    assert settled(ending).event is Event.RETRY


# ── any ending on any job ────────────────────────────────────────────────────

failures_ = st.builds(Failure, st.sampled_from(ErrorClass), st.text(max_size=5), st.text(max_size=5))
waits = st.integers(0, 30 * DAY)
endings: st.SearchStrategy[AttemptResult] = st.one_of(
    st.builds(Succeeded, st.none() | st.binary(max_size=3)),
    st.builds(Failed, failures_, st.none() | waits),
    st.builds(PermanentFailure, failures_),
    st.builds(Snoozed, waits, st.text(max_size=5), st.sampled_from([Because.SNOOZE, Because.BREAKER])),
    st.builds(
        Cancelled, st.text(max_size=5), st.sampled_from([Because.CHOSEN, Because.SKIPPED, Because.ASKED])
    ),
    st.just(HandedBack()),
    st.just(HandedBack(is_unstarted=True)),
    st.builds(Unknown, st.integers(0, 2 * HOUR)),
)
jobs = st.builds(
    job,
    failures=st.integers(0, 8),
    max_attempts=st.integers(1, 8),
    crashes=st.integers(0, 5),
    crashes_alone=st.integers(0, 5),
    snoozes=st.integers(0, 1_001),
    is_suspect=st.booleans(),
    is_cancel_asked=st.booleans(),
    at_most_once=st.booleans(),
    because=st.just("asked"),
    expires_at=st.none() | st.integers(NOW - SECOND, NOW + DAY),
    attempts=st.lists(st.builds(returned, st.none() | st.sampled_from(ErrorClass)), max_size=10).map(tuple),
)
policies_ = st.sampled_from(
    [TEN, Backoff.never(), Backoff.exponential(1, cap=10**9), {ErrorClass.TIMEOUT: TEN}, None]
)


@settings(max_examples=100, deadline=None)
@given(jobs, endings, policies_, st.floats(0, 1, exclude_max=True))
def test_any_ending_of_any_job_is_a_legal_settlement(
    record: JobRecord, ending: AttemptResult, policy: Any, draw: float
) -> None:
    """It ends the attempt, waits no negative time, forgets no failure, gives the hopeless no new attempt."""
    asked = decide_settlement(Claim(record, 7, 0), ending, policy, draw=draw)
    for found in (asked, reconcile(record, asked, NOW)):
        assert found.event in ENDINGS
        assert 0 <= found.delay <= max(LONGEST_DELAY, 30 * DAY)
        assert record.failures <= found.failures <= record.failures + 1
        assert record.crashes <= found.crashes <= record.crashes + 1
        assert record.snoozes <= found.snoozes <= record.snoozes + 1
        assert (found.delay == 0) or target(found.event) is State.DELAYED
        assert (found.because is None) == (found.event in {Event.SUCCEED, Event.HAND_BACK})
        if found.event is Event.RETRY:
            assert found.failures < record.max_attempts
            assert found.failure is not None
            assert found.failure.error_class in RETRIED
        if found.is_suspect:
            assert found.event not in {Event.SUCCEED, Event.FAIL, Event.STUCK}


@settings(max_examples=100, deadline=None)
@given(jobs)
def test_any_lost_lease_leads_to_a_legal_state_with_one_more_crash(record: JobRecord) -> None:
    """And back to ready only if it may run again."""
    loss = lose_lease(record)
    assert loss.state in {State.READY, State.CANCELLED, State.DEAD}
    assert loss.crashes == record.crashes + 1
    assert (loss.because is None) == (loss.state is State.READY)
    if loss.state is State.READY:
        assert loss.crashes < MAX_LOSSES
        assert not record.at_most_once
        assert not record.is_cancel_asked
