"""What a handler may say instead of a result, and what it may not say (S28, S29)."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import DAY, SECOND, to_instant
from fairlane.model.retry.outcome import Cancel, Fail, Outcome, Retry, Skip, Snooze


@pytest.mark.parametrize(
    "outcome", [Retry("why"), Snooze(5, "why"), Fail("why"), Cancel("why"), Skip("why"), Outcome("why")]
)
def test_every_outcome_can_be_raised_and_keeps_its_reason(outcome: Outcome) -> None:
    """It is an exception, so that it can leave from any depth; its text is the reason."""
    with pytest.raises(Outcome) as caught:
        raise outcome
    assert caught.value is outcome
    assert (outcome.reason, str(outcome)) == ("why", "why")


@pytest.mark.parametrize("outcome", [Retry(), Snooze(5), Fail(), Cancel(), Skip(), Outcome()])
def test_a_reason_may_be_left_out(outcome: Outcome) -> None:
    """Nobody is made to invent one."""
    assert (outcome.reason, str(outcome)) == ("", "")


def test_a_retry_is_retryable_at_the_policys_time_unless_it_says_otherwise() -> None:
    """The delay is stored as given."""
    assert (Retry().error_class, Retry().after) == (ErrorClass.RETRYABLE, None)
    asked = Retry(after=timedelta(minutes=2), error_class=ErrorClass.RATE_LIMITED)
    assert (asked.error_class, asked.after) == (ErrorClass.RATE_LIMITED, timedelta(minutes=2))


def test_a_fail_is_not_retryable_unless_it_says_otherwise() -> None:
    """The class is for the dead letter."""
    assert Fail().error_class is ErrorClass.NON_RETRYABLE
    assert Fail(error_class=ErrorClass.BUDGET).error_class is ErrorClass.BUDGET


@pytest.mark.parametrize("kind", [Retry, Fail])
def test_a_class_may_be_given_as_its_word_and_no_other(kind: Any) -> None:
    """A wrong word is the handler's error, raised where it stands."""
    assert kind(error_class="timeout").error_class is ErrorClass.TIMEOUT
    with pytest.raises(ValueError, match=r"error_class of a .* must be one of transient, .*nonsense"):
        kind(error_class="nonsense")


@pytest.mark.parametrize("after", [math.nan, math.inf, -math.inf])
def test_a_retry_after_a_time_that_means_nothing_is_refused_in_the_handler(after: float) -> None:
    """Not when the attempt is settled, where nobody could answer for it."""
    with pytest.raises(ValueError, match="finite number of seconds"):
        Retry(after=after)


@pytest.mark.parametrize(
    ("after", "delay"),
    [
        ("120", 120 * SECOND),
        ("0", 0),
        ("1.5", 3 * SECOND // 2),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 37 * SECOND),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 37 * SECOND),
        ("Sun Nov  6 08:49:37 1994", 37 * SECOND),
        ("sun, 06 nov 1994 08:49:60 gmt", 59 * SECOND),
        ("Sun, 06 Nov 1994 08:48:00 GMT", 0),
        ("Thursday, 06-Nov-25 08:49:37 GMT", DAY),
        ("999999999999", DAY),
        (timedelta(seconds=3), 3 * SECOND),
        (None, None),
    ],
)
def test_a_retry_reads_what_a_retry_after_header_says(after: Any, delay: int | None) -> None:
    """All three dates of RFC 9110, and seconds; never before now, and at most a day."""
    now = to_instant(datetime(1994, 11, 6, 8, 49, 0, tzinfo=UTC))
    assert Retry(after=after).delay(now) == delay
    assert Retry(after=after).after == after


@pytest.mark.parametrize(
    "after",
    [-1, -0.001, timedelta(seconds=-1), "-1", "soon", "", "١٢", "1e3", True, b"5", [5], object(),
     "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 25:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET"],
)  # fmt: skip
def test_a_retry_after_anything_else_is_refused_in_the_handler(after: Any) -> None:
    """It names the field and what it may be, and the attempt fails by it."""
    with pytest.raises(ValueError, match="after of a Retry must be seconds or a timedelta, 0 or more"):
        Retry(after=after)


@pytest.mark.parametrize("reason", [42, ValueError("no such page"), b"bytes", None])
def test_a_reason_may_be_anything(reason: Any) -> None:
    """`raise Cancel(error)` is written in haste, and means what it says."""
    assert Cancel(reason).reason == ("" if reason is None else str(reason))


@pytest.mark.parametrize("delay", [True, "5", None, object()])
def test_a_snooze_takes_a_duration_and_nothing_else(delay: Any) -> None:
    """A text would be repeated a million times before anybody noticed."""
    with pytest.raises(ValueError, match="delay of a Snooze must be seconds or a timedelta"):
        Snooze(delay)


@pytest.mark.parametrize("delay", [1, 1.0, timedelta(seconds=1), 3600, 2_592_000, timedelta(days=30)])
def test_a_snooze_lasts_from_one_second_to_thirty_days(delay: timedelta | float) -> None:
    """Both limits are allowed, and the delay is stored as given."""
    assert Snooze(delay).delay == delay


@pytest.mark.parametrize(
    ("delay", "message"),
    [
        (0, "not 0 s"),
        (-5, "not -5 s"),
        (0.999_999, "not 0.999999 s"),
        (timedelta(microseconds=999_999), "not 0.999999 s"),
        (2_592_000.000_001, "not 2592000.000001 s"),
        (timedelta(days=31), "not 2678400.0 s"),
        (math.inf, "not inf"),
        (math.nan, "not nan"),
    ],
)
def test_any_other_snooze_is_refused_and_shown(delay: timedelta | float, message: str) -> None:
    """A snooze of nothing would spin, one without end would be lost."""
    with pytest.raises(ValueError, match=message):
        Snooze(delay)
