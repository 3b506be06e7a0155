"""Dead letters: jobs that run again only if a person decides so (S75). Whatever ends a job may make one."""

from __future__ import annotations

from typing import Final, Literal, Protocol, TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord, NewJob
from fairlane.model.lifecycle.admission import Refusal
from fairlane.model.lifecycle.states import State
from fairlane.model.review import Review, ReviewAction, ReviewRecord
from fairlane.store.contract.request import MAX_PAGE_SIZE, MAX_ROWS_READ, OperatorRequest, Request

MAX_REPROCESSED: Final = 200
"""How many dead letters one request reprocesses at most."""


def check_dead_ids(number: int, most: int = MAX_PAGE_SIZE) -> None:
    """Raise ValueError if one request changes more dead letters than it may.

    >>> check_dead_ids(201, MAX_REPROCESSED)
    Traceback (most recent call last):
        ...
    ValueError: one request changes at most 200 dead letters, not 201
    """
    if number > most:
        message = f"one request changes at most {most} dead letters, not {number}"
        raise ValueError(message)


class DeadLetter(msgspec.Struct, frozen=True):
    """A dead job and its review by people. `error_class` is that of its last failure, if any.

    `fingerprint` is that of its last failure; empty if it had none, or died under a version that made none.
    """

    job: JobRecord
    error_class: ErrorClass | None
    fingerprint: str = ""
    review: ReviewRecord = ReviewRecord()


class DeadFiltered(Request, frozen=True, kw_only=True):
    """Filters that must all hold; `since` and `until` are about the time of death: [since, until)."""

    queue: str | None = None
    task: str | None = None
    error_class: ErrorClass | None = None
    fingerprint: str | None = None
    review: Review | None = None
    is_acknowledged: bool | None = None
    since: Instant | None = None
    until: Instant | None = None


class DeadRequest(DeadFiltered, frozen=True, kw_only=True):
    """Ask for a page of the dead letters that match."""

    limit: int = 50
    cursor: str | None = None


class DeadPage(msgspec.Struct, frozen=True):
    """A page, latest death first; it may be short or empty with a cursor."""

    letters: tuple[DeadLetter, ...]
    cursor: str | None


class DeadGetRequest(Request, frozen=True, kw_only=True):
    """Ask for one dead letter."""

    id: UUID


class DeadCount(msgspec.Struct, frozen=True, order=True):
    """How many dead letters of a tenant and queue have one review; zero counts are left out."""

    tenant: str
    queue: str
    review: Review
    letters: int


class DeadCountRequest(Request, frozen=True, kw_only=True):
    """Ask for counts, at most `MAX_COUNTS` per page."""

    limit: int = MAX_PAGE_SIZE
    cursor: str | None = None


class DeadCountPage(msgspec.Struct, frozen=True):
    """A page of counts, sorted; it may be short or empty with a cursor."""

    counts: tuple[DeadCount, ...]
    cursor: str | None


class DeadTallyRequest(DeadFiltered, frozen=True, kw_only=True):
    """Ask what the dead letters that match have in common, reading at most `limit`, up to `MAX_ROWS_READ`."""

    limit: int = MAX_ROWS_READ
    cursor: str | None = None


class DeadTally(msgspec.Struct, frozen=True, kw_only=True):
    """How many dead letters share a fingerprint, a class, a tenant, a queue, a task and a review.

    `first_at` and `last_at` are times of death; `sample` is the one that died last, of several the greatest
    id.
    """

    fingerprint: str
    error_class: ErrorClass | None
    tenant: str
    queue: str
    task: str
    review: Review
    letters: int
    first_at: Instant
    last_at: Instant
    sample: UUID


class DeadTallyPage(msgspec.Struct, frozen=True):
    """Tallies of the dead letters that one call has read, in any order, and how many it has read."""

    tallies: tuple[DeadTally, ...]
    looked_at: int
    cursor: str | None


class ReviewRequest(OperatorRequest, frozen=True, kw_only=True):
    """Do something about dead letters, at most `MAX_PAGE_SIZE`: who, and what they write about it."""

    ids: tuple[UUID, ...]
    action: ReviewAction
    who: str
    note: str = ""


class ReviewReply(msgspec.Struct, frozen=True):
    """What became of one dead letter. `not_allowed`: what was decided before stands.

    `review` is the letter's review after this request; None if there is no such letter.
    """

    id: UUID
    answer: Literal["done", "not_allowed", "not_found"]
    review: Review | None = None


class Reprocessing(msgspec.Struct, frozen=True):
    """A dead letter and the new job in its place, which the caller has built from what it has read.

    `checksum` is that of the payload it has read: if the stored one differs (the tenant was forgotten),
    nothing happens. The job is of the letter's tenant and has the dead job as its parent.
    """

    id: UUID
    checksum: int
    job: NewJob


class ReprocessRequest(OperatorRequest, frozen=True, kw_only=True):
    """Run dead letters again, at most `MAX_REPROCESSED`: who, and why."""

    items: tuple[Reprocessing, ...]
    who: str
    note: str = ""


def check_reprocess(request: ReprocessRequest) -> None:
    """Raise ValueError if there are too many items, or a new job has another parent than the dead one."""
    check_dead_ids(len(request.items), MAX_REPROCESSED)
    for item in request.items:
        if item.job.parent_id != item.id:
            message = f"the job in place of dead letter {item.id} has the parent {item.job.parent_id}"
            raise ValueError(message)


ReprocessAnswer: TypeAlias = Literal[
    "reprocessed", "already", "not_allowed", "changed", "refused", "not_found"
]


class ReprocessReply(msgspec.Struct, frozen=True):
    """What became of one dead letter, and its review after this request; None if there is no such letter.

    `reprocessed` and `already` name the job that runs in its place: this request's, or an earlier one's.
    `refused`: the new job was not admitted, and `refusal` says why; a job that holds its de-duplication key,
    or had its idempotency key, is such a reason.
    """

    id: UUID
    answer: ReprocessAnswer
    job: UUID | None = None
    review: Review | None = None
    refusal: Refusal | None = None


class DeleteRequest(OperatorRequest, frozen=True, kw_only=True):
    """Delete dead letters for good, at most `MAX_PAGE_SIZE`, whatever was decided about them."""

    ids: tuple[UUID, ...]


class FollowRequest(Request, frozen=True, kw_only=True):
    """Look how jobs that run in place of dead ones have ended, in one bounded pass."""

    limit: int = 1_000


class FollowedRun(msgspec.Struct, frozen=True):
    """A dead letter whose new job has ended; a state of None: the job is not stored any more."""

    id: UUID
    tenant: str
    job: UUID
    state: State | None


class FollowReply(msgspec.Struct, frozen=True):
    """The dead letters that learned how their new job has ended. `is_partial`: there may be more."""

    followed: tuple[FollowedRun, ...] = ()
    is_partial: bool = False


class DeadLettersFacet(Protocol):
    """Read dead letters, and do what people decide about them. Each id of a request is a step of its own.

    A step changes the letter, appends the entry of the request's `operation` to the audit and its event to
    the events, all or nothing (S60, S76).
    """

    async def get(self, request: DeadGetRequest) -> DeadLetter | None:
        """Return one dead letter with payload and history; None if there is none with this id."""

    async def find(self, request: DeadRequest) -> DeadPage:
        """Return a page, latest death first, of at most 10,000 rows. A foreign cursor raises ValueError."""

    async def count(self, request: DeadCountRequest) -> DeadCountPage:
        """Count per (tenant, queue, review), sorted; each count is exact as in `JobsFacet.count`."""

    async def tally(self, request: DeadTallyRequest) -> DeadTallyPage:
        """Count what the matching dead letters have in common, inside the store, latest death first.

        Reads at most `limit` and continues with the cursor and the same filters: the same tally may come
        again on a later page and is then to be added. A foreign cursor, or a limit that is not 1 to
        `MAX_ROWS_READ`, raises ValueError.
        """

    async def review(self, request: ReviewRequest) -> tuple[ReviewReply, ...]:
        """Do what `model.review.reviewed` says, for each id; one reply per id, in order.

        Appends the event `dead_letter_reviewed` where the review has changed. More than `MAX_PAGE_SIZE` ids
        raise ValueError.
        """

    async def reprocess(self, request: ReprocessRequest) -> tuple[ReprocessReply, ...]:
        """Enqueue a new job for each dead letter, and note it there, in one step. One reply per item.

        Of several callers at the same time one makes a job, and the others are told of it. The new job is
        admitted as an enqueue is, except that waiting limits do not count: closed queues, tenants and tasks
        refuse it. A letter whose new job is of another tenant is not found. Appends the event
        `job_dlq_reprocess_requested`. Workers that wait for its queue are woken. More than `MAX_REPROCESSED`
        items raise ValueError, and so does a new job whose parent is not the dead one.
        """

    async def delete(self, request: DeleteRequest) -> tuple[UUID, ...]:
        """Delete dead letters with their jobs; return the ids that are gone by this call.

        Idempotency keys stay for as long as they would have (S13). Appends `dead_letter_reviewed`, as a
        decision does. More than `MAX_PAGE_SIZE` ids raise ValueError.
        """

    async def follow(self, request: FollowRequest) -> FollowReply:
        """Note in dead letters how the jobs in their place have ended. Serves all tenants; bounded.

        Appends `job_dlq_reprocess_success` to the events and to the audit where the new job has succeeded.
        """
