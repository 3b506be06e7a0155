"""The review of a dead letter: what people decide about a job that will not run again by itself (S75).

Knows no store and no clock. Decides which decision may follow which, and what a review remembers.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.lifecycle.states import State

Review: TypeAlias = Literal["pending", "reprocessed", "resolved", "ignored", "discarded"]
ReviewAction: TypeAlias = Literal["acknowledge", "note", "resolve", "ignore", "discard"]

MAX_NOTES: Final = 100
"""How many notes a review holds; the oldest goes first."""

_RESULT: Final[dict[ReviewAction, Review]] = {
    "resolve": "resolved",
    "ignore": "ignored",
    "discard": "discarded",
}
_OPEN: Final = frozenset[Review]({"pending", "resolved", "ignored"})
"""What may still be decided otherwise. What runs again, or was discarded, is settled."""


class Mark(msgspec.Struct, frozen=True):
    """Who did something, and when."""

    who: str
    at: Instant


class ReviewNote(msgspec.Struct, frozen=True):
    """What somebody wrote, and what was done in the same step: a `ReviewAction` or `reprocess`."""

    who: str
    at: Instant
    action: str
    text: str


class NewRun(msgspec.Struct, frozen=True):
    """The job that runs in place of a dead one, and how it has ended; a state of None: it has not ended.

    `is_gone`: it was removed before anybody saw how it ended.
    """

    job: UUID
    state: State | None = None
    settled_at: Instant | None = None
    is_gone: bool = False

    @property
    def is_open(self) -> bool:
        """Whether its end is not known yet."""
        return self.state is None and not self.is_gone


class ReviewRecord(msgspec.Struct, frozen=True):
    """All that a dead letter remembers of its review. A new letter has this value."""

    review: Review = "pending"
    acknowledged: Mark | None = None
    decided: Mark | None = None
    notes: tuple[ReviewNote, ...] = ()
    new_run: NewRun | None = None


def may_follow(record: ReviewRecord, action: str) -> bool:
    """Whether an action, or `reprocess`, may follow what was decided before.

    >>> may_follow(ReviewRecord(), "reprocess"), may_follow(ReviewRecord("discarded"), "reprocess")
    (True, False)
    """
    return action == "note" or record.review in _OPEN


def reviewed(
    record: ReviewRecord, action: ReviewAction, who: str, text: str, now: Instant
) -> ReviewRecord | None:
    """Return a review after an action; None if it may not follow. The first who acknowledges stays.

    A decision acknowledges as well. Without a text only an acknowledgement and a decision leave a note.

    >>> reviewed(ReviewRecord(), "resolve", "ann", "", 5).review
    'resolved'
    """
    if not may_follow(record, action):
        return None
    notes = _with_note(record.notes, ReviewNote(who, now, action, text))
    if action == "note":
        return msgspec.structs.replace(record, notes=notes)
    mark = Mark(who, now)
    decided = _RESULT.get(action)
    return msgspec.structs.replace(
        record,
        review=decided or record.review,
        acknowledged=record.acknowledged or mark,
        decided=record.decided if decided is None else mark,
        notes=notes,
    )


def reprocessed(record: ReviewRecord, job: UUID, who: str, text: str, now: Instant) -> ReviewRecord:
    """Return a review after the dead job was replaced by a new one. The caller has asked `may_follow`."""
    mark = Mark(who, now)
    return msgspec.structs.replace(
        record,
        review="reprocessed",
        acknowledged=record.acknowledged or mark,
        decided=mark,
        notes=_with_note(record.notes, ReviewNote(who, now, "reprocess", text)),
        new_run=NewRun(job),
    )


def followed(record: ReviewRecord, state: State | None, settled_at: Instant | None) -> ReviewRecord:
    """Return a review that knows how its new job has ended; a state of None says that the job is gone."""
    if record.new_run is None:
        return record
    run = NewRun(record.new_run.job, state, settled_at, is_gone=state is None)
    return msgspec.structs.replace(record, new_run=run)


def scrubbed_review(record: ReviewRecord) -> ReviewRecord:
    """Return a review without its texts, for a tenant that is forgotten (S52)."""
    return msgspec.structs.replace(record, notes=())


def _with_note(notes: tuple[ReviewNote, ...], note: ReviewNote) -> tuple[ReviewNote, ...]:
    return (*notes, note)[-MAX_NOTES:]
