"""Dead letters as users see them: letters, groups, statistics, results of bulk actions. Asks no store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from fairlane.app.admin.breakers import BreakerView
from fairlane.app.admin.views import to_optional_datetime
from fairlane.app.job import Job
from fairlane.model.failure import ErrorClass
from fairlane.model.instants import to_datetime
from fairlane.model.journal.facts import last_failure
from fairlane.model.lifecycle.states import State
from fairlane.model.review import Mark, Review
from fairlane.store.contract.dead import DeadLetter


@dataclass(frozen=True, slots=True)
class DeadNote:
    """What somebody wrote about a dead letter, and what was done in the same step, such as `resolve`."""

    who: str
    at: datetime
    action: str
    # Free text may quote secrets (S6), and a repr ends up in logs.
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterView:
    """A dead job and its review at one instant.

    `review` is pending, reprocessed, resolved, ignored or discarded; `decided_by` is who decided so. The
    error is that of the last failure; all fields of it are None or empty if the job never failed.
    `fingerprint` is the same for failures with one cause. `new_job` runs in place of the dead one;
    `new_job_state` is None until it has ended, and `is_new_job_gone` if it was removed before.
    """

    job: Job[Any]
    died_at: datetime
    error_class: ErrorClass | None
    error_type: str
    message: str = field(repr=False)
    fingerprint: str
    review: Review
    acknowledged_by: str | None
    acknowledged_at: datetime | None
    decided_by: str | None
    decided_at: datetime | None
    notes: Sequence[DeadNote]
    new_job: UUID | None
    new_job_state: State | None
    is_new_job_gone: bool

    @property
    def id(self) -> UUID:
        """The id of the dead job, which is that of the letter."""
        return self.job.id


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroup:
    """Dead letters with one cause: how many, whose, since when, and one of them.

    `error_type` and `message`, with secrets redacted, are those of `sample`, the letter that died last.
    Letters without a fingerprint are grouped by task and class. `breaker` is that of the task while it is not
    closed: run again now, the jobs would wait behind it. None inside a tenant (S9).
    """

    fingerprint: str
    task: str
    error_class: ErrorClass | None
    error_type: str
    message: str
    letters: int
    tenants: Sequence[str]
    first_at: datetime
    last_at: datetime
    sample: UUID
    breaker: BreakerView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadStatistics:
    """How many dead letters there are, and how many by each property, most first.

    Letters without a failure have the error class "none".
    """

    letters: int
    by_queue: Mapping[str, int]
    by_task: Mapping[str, int]
    by_tenant: Mapping[str, int]
    by_error_class: Mapping[str, int]
    by_review: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RefusedLetter:
    """A dead letter about which nothing was done, and why: a word for programs, and a text."""

    id: UUID
    reason: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkResult:
    """What became of the dead letters or jobs that matched when a bulk action began, or has become so far.

    `refused` counts by reason those that were left as they are; `examples` has some of them, if they are dead
    letters. `left` are those that were not looked at, because of `limit` or since the action goes on.
    """

    matches: int
    done: int
    refused: Mapping[str, int]
    examples: Sequence[RefusedLetter]
    left: int

    @property
    def is_complete(self) -> bool:
        """Whether everything that matched was done."""
        return not self.left and not self.refused


def letter_view(letter: DeadLetter, job: Job[Any]) -> DeadLetterView:
    """Return the view of a dead letter, given its job as callers see it."""
    record, failure = letter.review, last_failure(letter.job)
    acknowledged, decided, run = record.acknowledged, record.decided, record.new_run
    return DeadLetterView(
        job=job,
        died_at=to_datetime(letter.job.settled_at or 0),
        error_class=letter.error_class,
        error_type="" if failure is None else failure.error_type,
        message="" if failure is None else failure.message,
        fingerprint=letter.fingerprint,
        review=record.review,
        acknowledged_by=_who(acknowledged),
        acknowledged_at=_at(acknowledged),
        decided_by=_who(decided),
        decided_at=_at(decided),
        notes=tuple(DeadNote(one.who, to_datetime(one.at), one.action, one.text) for one in record.notes),
        new_job=None if run is None else run.job,
        new_job_state=None if run is None else run.state,
        is_new_job_gone=run is not None and run.is_gone,
    )


def _who(mark: Mark | None) -> str | None:
    return None if mark is None else mark.who


def _at(mark: Mark | None) -> datetime | None:
    return to_optional_datetime(None if mark is None else mark.at)
