"""Dead letters as the REST API answers them: their types, and how they are made, with secrets redacted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec

from fairlane.app.dead.letter_json import group_json, letter_json, review_json, statistics_json
from fairlane.app.dead.views import DeadGroup, DeadLetterView, DeadStatistics
from fairlane.app.fairlane import Fairlane
from fairlane.app.redaction import Redactor
from fairlane.model.failure import ErrorClass
from fairlane.model.guards.breaker import Phase
from fairlane.model.lifecycle.states import State
from fairlane.model.review import Review
from fairlane.store.contract.dead import DeadLetter
from fairlane.web.api.bodies import Moment
from fairlane.web.api.job_replies import EnqueuedReply, JobReply, Reply, TotalReply, redactors


class DeadNoteReply(Reply, frozen=True, kw_only=True):
    """What somebody wrote about a dead letter, and what was done in the same step."""

    who: str
    at: Moment
    action: str
    text: str


class DeadSummary(Reply, frozen=True, kw_only=True):
    """A dead letter without what its job carries.

    `category` is that of its task, where this process knows the task. `new_job` runs in place of the dead
    one.
    """

    id: UUID
    tenant: str
    queue: str
    task: str
    category: str | None
    review: Review
    idempotency_key: str
    correlation_id: str
    error_class: ErrorClass | None
    error_type: str
    message: str
    fingerprint: str
    attempt: int
    enqueued_at: Moment
    died_at: Moment
    acknowledged_by: str | None
    acknowledged_at: Moment | None
    decided_by: str | None
    decided_at: Moment | None
    new_job: UUID | None
    new_job_state: State | None
    is_new_job_gone: bool


class DeadReply(DeadSummary, frozen=True, kw_only=True):
    """A dead letter with its notes and its job."""

    notes: Sequence[DeadNoteReply]
    job: JobReply


class DeadPageReply(Reply, frozen=True, kw_only=True):
    """One page of dead letters, latest death first. `cursor` null is the end.

    `total` is null behind the first page, or if not asked for.
    """

    items: Sequence[DeadSummary]
    cursor: str | None
    total: TotalReply | None


class GroupBreakerReply(Reply, frozen=True, kw_only=True):
    """A breaker that is not closed, of all tenants or of one; `until` is when the first job may pass."""

    name: str
    tenant: str | None
    state: Phase
    until: Moment | None


class DeadGroupReply(Reply, frozen=True, kw_only=True):
    """Dead letters with one cause: how many, whose, since when, and the id of the last one.

    `breaker` is that of the task while it is not closed: run again now, the jobs would wait. Callers of one
    tenant never see it.
    """

    fingerprint: str
    task: str
    error_class: ErrorClass | None
    error_type: str
    message: str
    letters: int
    tenants: Sequence[str]
    first_at: Moment
    last_at: Moment
    sample: UUID
    breaker: GroupBreakerReply | None


class DeadStatisticsReply(Reply, frozen=True, kw_only=True):
    """How many dead letters there are, and how many by each property, most first."""

    letters: int
    queues: Mapping[str, int]
    tasks: Mapping[str, int]
    tenants: Mapping[str, int]
    error_classes: Mapping[str, int]
    reviews: Mapping[str, int]


class ReprocessedReply(Reply, frozen=True, kw_only=True):
    """The id of the dead letter, and the job that runs in its place, with its new idempotency key."""

    id: UUID
    job: EnqueuedReply


class DeletedReply(Reply, frozen=True, kw_only=True):
    """What is gone for good."""

    id: UUID


async def dead_summaries(app: Fairlane, letters: Sequence[DeadLetterView]) -> list[DeadSummary]:
    """Return the list entries of dead letters."""
    by_task = await redactors(app, {letter.job.task for letter in letters})
    return [
        msgspec.convert(_summary(app, letter, by_task[letter.job.task]), DeadSummary) for letter in letters
    ]


async def dead_reply(app: Fairlane, letter: DeadLetter, view: DeadLetterView) -> DeadReply:
    """Return everything about a dead letter."""
    task = letter.job.task
    redactor = (await redactors(app, [task]))[task]
    values = {**_summary(app, view, redactor), **letter_json(letter, view, redactor)}
    return msgspec.convert(values, DeadReply)


def group_reply(group: DeadGroup) -> DeadGroupReply:
    """Return a group."""
    return msgspec.convert(group_json(group), DeadGroupReply)


def statistics_reply(statistics: DeadStatistics) -> DeadStatisticsReply:
    """Return the statistics."""
    return msgspec.convert(statistics_json(statistics), DeadStatisticsReply)


def _summary(app: Fairlane, letter: DeadLetterView, redactor: Redactor) -> dict[str, Any]:
    job, declared = letter.job, app.client.registry.find(letter.job.task)
    return {
        **review_json(letter, redactor),
        "category": None if declared is None else declared.category,
        "idempotency_key": redactor.text(job.idempotency_key) or "",
        "correlation_id": redactor.text(job.correlation_id) or "",
        "attempt": job.attempt,
        "enqueued_at": job.enqueued_at,
    }
