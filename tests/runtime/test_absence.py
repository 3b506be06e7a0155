"""A store that is away is tried again with jitter, and spoken of once (S66)."""

from __future__ import annotations

from logging import getLogger

import pytest

from fairlane.model.errors import StoreGone, StoreUnavailable
from fairlane.model.instants import Micros
from fairlane.runtime.absence import FIRST_PAUSE, LONGEST_PAUSE, Absence, enduring

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
    absence = Absence(getLogger("fairlane"), "w1", never)
    for _ in range(5):
        absence.met(AWAY)
    absence.over(absence.mark())
    absence.over(absence.mark())
    absence.met(AWAY)
    assert events(caplog) == ["store_away", "store_back", "store_away"]


def test_a_store_that_is_gone_is_told_once_and_never_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    """One line, one call; what fails afterwards for whatever reason adds nothing."""
    caplog.set_level("INFO")
    told: list[bool] = []
    absence = Absence(getLogger("fairlane"), "w1", lambda: told.append(absence.is_for_good))
    absence.met(AWAY)
    for error in (GONE, GONE, AWAY):
        absence.met(error)
    assert (events(caplog), told) == (["store_away", "store_gone"], [True])


def test_pauses_grow_are_bounded_and_differ() -> None:
    """So that a thousand workers do not come back at the same instant."""
    absences = [Absence(getLogger("fairlane"), "w", never) for _ in range(20)]
    first = [absence.met(AWAY) for absence in absences]
    assert all(FIRST_PAUSE // 2 <= pause <= FIRST_PAUSE for pause in first)
    assert len(set(first)) > 10
    for _ in range(40):
        last = [absence.met(AWAY) for absence in absences]
    assert all(LONGEST_PAUSE // 2 <= pause <= LONGEST_PAUSE for pause in last)


def test_an_answer_to_what_was_asked_before_the_failure_tells_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It was under way when the store went."""
    absence = Absence(getLogger("fairlane"), "w1", never)
    mark = absence.mark()
    absence.met(AWAY)
    absence.over(mark)
    absence.met(AWAY)
    assert events(caplog) == ["store_away"]


async def test_only_a_witness_ends_an_absence_and_other_errors_go_on_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A pass that asked nothing proves nothing; a mistake is not an absence."""
    caplog.set_level("INFO")
    absence = Absence(getLogger("fairlane"), "w1", never)
    answers: list[BaseException | Micros] = [AWAY, 7, 7, ValueError("mistake")]

    async def one_pass() -> Micros | None:
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    assert await enduring(one_pass, absence)() is not None
    assert await enduring(one_pass, absence)() == 7
    assert events(caplog) == ["store_away"]
    assert await enduring(one_pass, absence, is_witness=True)() == 7
    assert events(caplog) == ["store_away", "store_back"]
    with pytest.raises(ValueError, match="mistake"):
        await enduring(one_pass, absence)()
