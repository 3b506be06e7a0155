"""During an outage calls are tried again with jitter, and it is logged once (S66)."""

from __future__ import annotations

from logging import getLogger

import pytest

from fairlane.model.errors import StoreGone, StoreUnavailable
from fairlane.model.instants import Micros
from fairlane.runtime.outage import FIRST_PAUSE, LONGEST_PAUSE, StoreOutage, retry_on_outage

AWAY = StoreUnavailable("no route")
GONE = StoreGone("it was deleted")


def never() -> None:
    """Be told that the store is gone; it is not."""
    raise AssertionError


def events(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Name what was logged."""
    return [record.__dict__["event"] for record in caplog.records]


def test_an_absence_is_told_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    """However many tries there are between."""
    caplog.set_level("INFO")
    outage = StoreOutage(getLogger("fairlane"), "w1", never)
    for _ in range(5):
        outage.failed(AWAY)
    outage.answered(outage.mark())
    outage.answered(outage.mark())
    outage.failed(AWAY)
    assert events(caplog) == ["store_away", "store_back", "store_away"]


def test_a_store_that_is_gone_is_told_once_and_never_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    """One line, one call; what fails afterwards for whatever reason adds nothing."""
    caplog.set_level("INFO")
    told: list[bool] = []
    outage = StoreOutage(getLogger("fairlane"), "w1", lambda: told.append(outage.is_permanent))
    outage.failed(AWAY)
    for error in (GONE, GONE, AWAY):
        outage.failed(error)
    assert (events(caplog), told) == (["store_away", "store_gone"], [True])


def test_pauses_grow_are_bounded_and_differ() -> None:
    """So that a thousand workers do not come back at the same instant."""
    outages = [StoreOutage(getLogger("fairlane"), "w", never) for _ in range(20)]
    first = [outage.failed(AWAY) for outage in outages]
    assert all(FIRST_PAUSE // 2 <= pause <= FIRST_PAUSE for pause in first)
    assert len(set(first)) > 10
    for _ in range(40):
        last = [outage.failed(AWAY) for outage in outages]
    assert all(LONGEST_PAUSE // 2 <= pause <= LONGEST_PAUSE for pause in last)


def test_an_answer_to_what_was_asked_before_the_failure_tells_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It was under way when the store went."""
    outage = StoreOutage(getLogger("fairlane"), "w1", never)
    mark = outage.mark()
    outage.failed(AWAY)
    outage.answered(mark)
    outage.failed(AWAY)
    assert events(caplog) == ["store_away"]


async def test_only_a_witness_ends_an_absence_and_other_errors_go_on_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A pass that asked nothing proves nothing; a mistake is not an outage."""
    caplog.set_level("INFO")
    outage = StoreOutage(getLogger("fairlane"), "w1", never)
    answers: list[BaseException | Micros] = [AWAY, 7, 7, ValueError("mistake")]

    async def one_pass() -> Micros | None:
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    assert await retry_on_outage(one_pass, outage)() is not None
    assert await retry_on_outage(one_pass, outage)() == 7
    assert events(caplog) == ["store_away"]
    assert await retry_on_outage(one_pass, outage, ends_outage=True)() == 7
    assert events(caplog) == ["store_away", "store_back"]
    with pytest.raises(ValueError, match="mistake"):
        await retry_on_outage(one_pass, outage)()


async def test_a_pass_that_has_to_be_in_time_pauses_no_longer_than_it_says() -> None:
    """However often others have tried before it: a renewal that waits for longer would lose its leases."""
    outage = StoreOutage(getLogger("fairlane"), "w1", never)
    for _ in range(40):
        outage.failed(AWAY)

    async def one_pass() -> Micros | None:
        raise AWAY

    pauses = [await retry_on_outage(one_pass, outage, max_pause=FIRST_PAUSE)() for _ in range(20)]
    assert all(pause is not None and FIRST_PAUSE // 2 <= pause <= FIRST_PAUSE for pause in pauses)
    assert len(set(pauses)) > 10
