"""A task's own function says how long to wait before a retry (S26)."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.instants import DAY, SECOND
from fairlane.model.job import JobRecord
from fairlane.model.retry.decision import Failed
from fairlane.model.retry.own_delay import with_own_delay
from tests.model.retry.test_decision import job as running

ERROR = ConnectionError("the bank is closed")
RESULT = Failed(Failure(ErrorClass.TRANSIENT, "ConnectionError", "the bank is closed"))


def job(**values: Any) -> JobRecord:
    """Return a running job with two failures and five attempts."""
    return running(**{"failures": 2, "max_attempts": 5, **values})


def saying(answer: object) -> Callable[..., Any]:
    """Return a function that always answers so."""
    return lambda *_: answer


class Mute:
    """Something that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("answer", "delay"),
    [
        (7, 7 * SECOND),
        (0.5, SECOND // 2),
        (timedelta(minutes=1), 60 * SECOND),
        (0, 0),
        (-3, 0),
        (timedelta(days=-1), 0),
        (86_401, DAY),
        (10**300, DAY),
        (timedelta.max, DAY),
        (None, None),
    ],
)
def test_its_answer_is_bounded_to_a_day(answer: object, delay: int | None) -> None:
    """None leaves the delay to the policy."""
    found = with_own_delay(RESULT, ERROR, job(), saying(answer))
    assert (found.after, found.delay_error, found.failure) == (delay, None, RESULT.failure)


@pytest.mark.parametrize("answer", [math.nan, math.inf, -math.inf, True, "5", [5], {}, object, Mute()])
def test_nonsense_is_ignored_and_reported(answer: object) -> None:
    """In a sentence for the log; the policy's delay stays."""
    found = with_own_delay(RESULT, ERROR, job(), saying(answer))
    assert found.after is None
    assert str(found.delay_error).startswith("it returned ")
    assert str(found.delay_error).endswith(", which is neither seconds, a timedelta nor None")


@pytest.mark.parametrize(
    "broken", [ValueError("no idea"), KeyboardInterrupt("no idea"), SystemExit("no idea")]
)
def test_a_function_that_raises_is_ignored_and_reported(broken: BaseException) -> None:
    """Whatever it raises."""

    def function(error: BaseException, failures: int) -> int:
        raise broken

    found = with_own_delay(RESULT, ERROR, job(), function)
    assert (found.after, found.delay_error) == (None, f"it raised {type(broken).__name__}: no idea")


def test_it_is_asked_with_the_error_and_the_failures_with_this_one() -> None:
    """Once."""
    asked: list[tuple[BaseException, int]] = []
    with_own_delay(RESULT, ERROR, job(), lambda *given: asked.append(given))
    assert asked == [(ERROR, 3)]


@pytest.mark.parametrize(
    ("result", "values"),
    [
        (Failed(RESULT.failure, after=3 * SECOND), {}),
        (Failed(Failure(ErrorClass.NON_RETRYABLE, "KeyError", "x")), {}),
        (RESULT, {"failures": 4}),
        (RESULT, {"max_attempts": 1, "failures": 0}),
    ],
    ids=["Retry names a delay", "not retried", "last attempt", "only attempt"],
)
def test_it_is_not_asked_where_it_could_say_nothing(result: Failed, values: dict[str, Any]) -> None:
    """`Retry(after=)` wins, and what is not retried has no delay."""
    asked: list[object] = []
    assert with_own_delay(result, ERROR, job(**values), lambda *given: asked.append(given)) is result
    assert asked == []
