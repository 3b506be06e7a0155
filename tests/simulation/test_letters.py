"""What is judged of dead letters in the simulation: the check can fail."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import pytest

from fairlane.model.job import NewJob
from fairlane.model.review import ReviewAction
from fairlane.model.scope import Scope
from fairlane.store.contract.dead import (
    ReprocessAnswer,
    Reprocessing,
    ReprocessReply,
    ReprocessRequest,
    ReviewReply,
)
from tests.simulation.letters import LettersCheck

LETTER, FIRST, SECOND = UUID(int=1), UUID(int=2), UUID(int=3)


def asked(
    check: LettersCheck, answer: ReprocessAnswer, job: UUID, *, wanted: UUID | None = None
) -> Iterable[str]:
    """Hear of one letter that was asked to run again."""
    new = NewJob(
        id=wanted or job,
        tenant="acme",
        queue="mail",
        task="send",
        payload=b"{}",
        checksum=0,
        parent_id=LETTER,
    )
    request = ReprocessRequest(scope=Scope.all(), items=(Reprocessing(LETTER, 0, new),), who="ann")
    return list(check.reprocessed(request, (ReprocessReply(LETTER, answer, job),)))


def decided(check: LettersCheck, action: ReviewAction) -> Iterable[str]:
    """Hear of a decision that the store took."""
    return list(check.reviewed(action, (ReviewReply(LETTER, "done"),)))


def test_a_letter_may_run_again_once() -> None:
    """Whoever asks later hears of the same job."""
    check = LettersCheck()
    assert asked(check, "reprocessed", FIRST) == []
    assert asked(check, "already", FIRST, wanted=SECOND) == []
    assert asked(check, "already", SECOND) == [
        f"dead letter {LETTER} is said to run as {SECOND}, and runs as {FIRST}"
    ]
    assert asked(check, "reprocessed", SECOND) == [
        f"dead letter {LETTER} runs again as {SECOND}, and already as {FIRST}"
    ]


def test_what_was_discarded_does_not_run_again() -> None:
    """What was resolved or ignored may."""
    check = LettersCheck()
    assert [decided(check, action) for action in ("resolve", "ignore", "acknowledge", "discard")] == [[]] * 4
    assert asked(check, "reprocessed", FIRST) == [
        f"dead letter {LETTER} runs again as {FIRST}, though it was discarded"
    ]


@pytest.mark.parametrize("action", ["resolve", "ignore", "discard"])
def test_nobody_decides_about_a_letter_that_runs_again(action: ReviewAction) -> None:
    """It keeps its decision; to look after it or to write a note is none."""
    check = LettersCheck()
    asked(check, "reprocessed", FIRST)
    assert decided(check, "note") == []
    assert decided(check, action) == [f"{action} of dead letter {LETTER}, in whose place job {FIRST} runs"]


def test_the_job_that_is_there_is_the_one_that_was_sent() -> None:
    """The caller has chosen its id."""
    (said,) = asked(LettersCheck(), "reprocessed", SECOND, wanted=FIRST)
    assert said == f"dead letter {LETTER} runs again as {SECOND}, asked for was {FIRST}"
