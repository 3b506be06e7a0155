"""What people decide about a dead letter, and what a review remembers (S75)."""

from __future__ import annotations

from typing import Final, get_args
from uuid import UUID

import msgspec
import pytest

from fairlane.model.lifecycle.states import State
from fairlane.model.review import (
    MAX_NOTES,
    Mark,
    NewRun,
    Review,
    ReviewAction,
    ReviewNote,
    ReviewRecord,
    followed,
    may_follow,
    reprocessed,
    reviewed,
    scrubbed_review,
)

ACTIONS: Final[tuple[ReviewAction, ...]] = get_args(ReviewAction)
REVIEWS: Final[tuple[Review, ...]] = get_args(Review)
NEW: Final = ReviewRecord()
JOB: Final = UUID(int=7)
ANN, BOB = Mark("ann", 5), Mark("bob", 9)


@pytest.mark.parametrize("review", REVIEWS)
@pytest.mark.parametrize("action", [*ACTIONS, "reprocess"])
def test_what_is_settled_takes_nothing_but_notes(review: Review, action: str) -> None:
    """Pending, resolved and ignored ones may be decided otherwise."""
    is_settled = review in {"reprocessed", "discarded"}
    assert may_follow(ReviewRecord(review), action) is (not is_settled or action == "note")


@pytest.mark.parametrize(
    ("action", "after"),
    [
        ("acknowledge", ReviewRecord("pending", ANN, None)),
        ("note", ReviewRecord("pending", None, None)),
        ("resolve", ReviewRecord("resolved", ANN, ANN)),
        ("ignore", ReviewRecord("ignored", ANN, ANN)),
        ("discard", ReviewRecord("discarded", ANN, ANN)),
    ],
)
def test_each_action_on_a_new_letter(action: ReviewAction, after: ReviewRecord) -> None:
    """A decision acknowledges; every action leaves a note, with or without a text."""
    for text in ("", "because"):
        note = ReviewNote("ann", 5, action, text)
        assert reviewed(NEW, action, "ann", text, 5) == msgspec.structs.replace(after, notes=(note,))


@pytest.mark.parametrize("action", ACTIONS)
def test_a_later_action_keeps_who_acknowledged_first(action: ReviewAction) -> None:
    """And who decided, unless it is another decision."""
    before = ReviewRecord("resolved", ANN, ANN, (ReviewNote("ann", 5, "resolve", ""),))
    after = reviewed(before, action, "bob", "no", 9)
    assert after is not None
    assert after.acknowledged == ANN
    assert after.decided == (BOB if action in {"resolve", "ignore", "discard"} else ANN)
    assert after.notes == (*before.notes, ReviewNote("bob", 9, action, "no"))


@pytest.mark.parametrize("review", ["reprocessed", "discarded"])
@pytest.mark.parametrize("action", ACTIONS)
def test_what_may_not_follow_is_no_review(review: Review, action: ReviewAction) -> None:
    """A note changes nothing but the notes."""
    before = ReviewRecord(review, ANN, ANN, (), NewRun(JOB))
    after = reviewed(before, action, "bob", "no", 9)
    if action == "note":
        assert after == msgspec.structs.replace(before, notes=(ReviewNote("bob", 9, "note", "no"),))
    else:
        assert after is None


def test_the_newest_notes_stay() -> None:
    """Whatever left them."""
    record = NEW
    for number in range(MAX_NOTES + 2):
        found = reviewed(record, "note", "ann", str(number), number)
        assert found is not None
        record = found
    assert [note.text for note in record.notes] == [str(number) for number in range(2, MAX_NOTES + 2)]
    again = reprocessed(record, JOB, "ann", "last", 500)
    assert len(again.notes) == MAX_NOTES
    assert again.notes[-1] == ReviewNote("ann", 500, "reprocess", "last")


@pytest.mark.parametrize("first", [None, ANN])
def test_a_new_run_is_a_decision(first: Mark | None) -> None:
    """It names the job, of which nobody knows yet how it ends."""
    after = reprocessed(ReviewRecord(acknowledged=first), JOB, "bob", "fixed", 9)
    note = ReviewNote("bob", 9, "reprocess", "fixed")
    assert after == ReviewRecord("reprocessed", first or BOB, BOB, (note,), NewRun(JOB))
    assert after.new_run is not None
    assert after.new_run.is_open


@pytest.mark.parametrize(
    ("state", "settled_at", "run"),
    [
        (State.SUCCEEDED, 20, NewRun(JOB, State.SUCCEEDED, 20)),
        (State.DEAD, 20, NewRun(JOB, State.DEAD, 20)),
        (State.CANCELLED, 20, NewRun(JOB, State.CANCELLED, 20)),
        (None, None, NewRun(JOB, is_gone=True)),
    ],
)
def test_a_letter_learns_how_its_new_job_ended(
    state: State | None, settled_at: int | None, run: NewRun
) -> None:
    """Or that it is gone; either way there is nothing more to learn."""
    before = reprocessed(NEW, JOB, "ann", "", 5)
    after = followed(before, state, settled_at)
    assert after == msgspec.structs.replace(before, new_run=run)
    assert after.new_run is not None
    assert not after.new_run.is_open


def test_without_a_new_run_there_is_nothing_to_learn() -> None:
    """The review stays as it is."""
    assert followed(NEW, State.SUCCEEDED, 20) == NEW


def test_a_forgotten_review_keeps_its_decision_and_no_text() -> None:
    """Who decided, and when, is no content of the tenant."""
    record = reprocessed(NEW, JOB, "ann", "Zoe called", 5)
    assert scrubbed_review(record) == msgspec.structs.replace(record, notes=())
    assert scrubbed_review(NEW) == NEW
