"""The dead-letter facet of the oracle."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.facts import fingerprint_of, last_failure, reprocess_requested, reprocess_success
from fairlane.model.journal.facts import reviewed as told
from fairlane.model.lifecycle.admission import Admitted, Refusal, RefusalKind, Repeat, admit, linked_to_dead
from fairlane.model.lifecycle.states import State, is_finished
from fairlane.model.policy.limits import NO_LIMITS
from fairlane.model.review import Review, ReviewRecord, followed, may_follow, reprocessed, reviewed
from fairlane.store.contract.dead import (
    DeadCount,
    DeadCountPage,
    DeadCountRequest,
    DeadGetRequest,
    DeadLetter,
    DeadPage,
    DeadRequest,
    DeadTally,
    DeadTallyPage,
    DeadTallyRequest,
    DeleteRequest,
    FollowedRun,
    FollowReply,
    FollowRequest,
    Reprocessing,
    ReprocessReply,
    ReprocessRequest,
    ReviewReply,
    ReviewRequest,
    check_dead_ids,
    check_reprocess,
)
from fairlane.store.contract.filters import matches_dead
from fairlane.store.contract.request import (
    MAX_ROWS_READ,
    CountPosition,
    JobPosition,
    Request,
    check_counts,
    check_reading,
    check_serves_all,
    from_cursor,
    to_cursor,
)
from tests.oracle.audit import Audit
from tests.oracle.core import Core
from tests.oracle.jobs import facts_of, store_new

Cause: TypeAlias = tuple[str, ErrorClass | None, str, str, str, Review]
"""What a tally has in common: fingerprint, class, tenant, queue, task, review."""


class OracleDead:
    """Dead letters, stored, read and reviewed."""

    def __init__(self, core: Core) -> None:
        """Share the state with the other facets."""
        self._core = core

    # ── looking ───────────────────────────────────────────────────────────────

    def _letters(self, request: Request, cursor: str | None = None) -> list[DeadLetter]:
        jobs = self._core.books.jobs.values()
        dead = [job for job in jobs if job.state is State.DEAD and request.scope.covers(job.tenant)]
        if cursor is not None:
            start = from_cursor(cursor)
            dead = [job for job in dead if _place(job) < (start.enqueued_at, start.id.bytes)]
        return [self._letter(job) for job in sorted(dead, key=_place, reverse=True)]

    def _letter(self, job: JobRecord) -> DeadLetter:
        review = self._core.books.reviews.get(job.id, ReviewRecord())
        failure = last_failure(job)
        if failure is None:
            return DeadLetter(job, None, "", review)
        return DeadLetter(job, failure.error_class, failure.fingerprint, review)

    def _one(self, request: Request, id: UUID) -> DeadLetter | None:
        job = self._core.books.jobs.get(id)
        if job is None or job.state is not State.DEAD or not request.scope.covers(job.tenant):
            return None
        return self._letter(job)

    async def get(self, request: DeadGetRequest) -> DeadLetter | None:
        return self._one(request, request.id)

    async def find(self, request: DeadRequest) -> DeadPage:
        letters = self._letters(request, request.cursor)
        found: list[DeadLetter] = []
        for read, letter in enumerate(letters, 1):
            if matches_dead(letter, request):
                found.append(letter)
            if (len(found) == request.limit or read == MAX_ROWS_READ) and read < len(letters):
                return DeadPage(tuple(found), _cursor_after(letter))
        return DeadPage(tuple(found), None)

    async def count(self, request: DeadCountRequest) -> DeadCountPage:
        check_counts(request.limit)
        start = (
            CountPosition("", "", "")
            if request.cursor is None
            else from_cursor(request.cursor, CountPosition)
        )
        counts: Counter[tuple[str, str, Review]] = Counter(
            (one.job.tenant, one.job.queue, one.review.review) for one in self._letters(request)
        )
        after = (start.tenant, start.queue, start.label)
        found = sorted(DeadCount(*key, number) for key, number in counts.items() if key > after)
        page, rest = found[: request.limit], found[request.limit :]
        last = CountPosition(page[-1].tenant, page[-1].queue, page[-1].review) if page and rest else None
        return DeadCountPage(tuple(page), None if last is None else to_cursor(last))

    async def tally(self, request: DeadTallyRequest) -> DeadTallyPage:
        check_reading(request.limit)
        letters = self._letters(request, request.cursor)
        page = letters[: request.limit]
        found: dict[Cause, list[DeadLetter]] = {}
        for letter in page:
            if matches_dead(letter, request):
                found.setdefault(_cause(letter), []).append(letter)
        tallies = tuple(_tally(cause, group) for cause, group in found.items())
        is_over = len(letters) <= request.limit
        return DeadTallyPage(tallies, len(page), None if is_over else _cursor_after(page[-1]))

    # ── deciding ──────────────────────────────────────────────────────────────

    async def review(self, request: ReviewRequest) -> tuple[ReviewReply, ...]:
        check_dead_ids(len(request.ids))
        return tuple(self._review(request, id) for id in request.ids)

    def _review(self, request: ReviewRequest, id: UUID) -> ReviewReply:
        letter = self._one(request, id)
        if letter is None:
            return ReviewReply(id, "not_found")
        after = reviewed(letter.review, request.action, request.who, request.note, self._core.now())
        if after is None:
            return ReviewReply(id, "not_allowed", letter.review.review)
        self._core.books.reviews[id] = after
        if after.review != letter.review.review:
            self._tell(told(letter.job, letter.fingerprint, after.review))
        Audit(self._core, request.operation).reviewed(letter.job, letter.review, after)
        return ReviewReply(id, "done", after.review)

    async def reprocess(self, request: ReprocessRequest) -> tuple[ReprocessReply, ...]:
        check_reprocess(request)
        return tuple(self._reprocess(request, index, item) for index, item in enumerate(request.items))

    def _reprocess(self, request: ReprocessRequest, index: int, item: Reprocessing) -> ReprocessReply:
        letter = self._one(request, item.id)
        if letter is None or letter.job.tenant != item.job.tenant:
            return ReprocessReply(item.id, "not_found")
        record = letter.review
        if letter.job.checksum != item.checksum:
            return ReprocessReply(item.id, "changed", review=record.review)
        if record.review == "reprocessed" and record.new_run is not None:
            return ReprocessReply(item.id, "already", record.new_run.job, record.review)
        if not may_follow(record, "reprocess"):
            return ReprocessReply(item.id, "not_allowed", review=record.review)
        refusal = self._enqueue(index, item)
        if refusal is not None:
            return ReprocessReply(item.id, "refused", review=record.review, refusal=refusal)
        new, now = item.job.id, self._core.now()
        after = reprocessed(record, new, request.who, request.note, now)
        self._core.books.reviews[item.id] = after
        self._tell(reprocess_requested(letter.job, letter.fingerprint, new))
        Audit(self._core, request.operation).reprocessed(letter.job, new)
        return ReprocessReply(item.id, "reprocessed", new, after.review)

    def _enqueue(self, index: int, item: Reprocessing) -> Refusal | None:
        """Store the new job, or return why not; waiting limits do not count."""
        books, now = self._core.books, self._core.now()
        facts = facts_of(books, item.job, now, must_be_declared=False)
        facts = msgspec.structs.replace(facts, limits=NO_LIMITS, max_waiting=None)
        match admit(index, item.job, facts, repeated=False):
            case Refusal() as refusal:
                return refusal
            case Repeat(existing):
                return Refusal(
                    index, RefusalKind.DUPLICATE, item.job.tenant, item.job.queue, existing=existing
                )
            case Admitted(_, replaces):
                dead = None if replaces is None else books.jobs.get(replaces)
                job = store_new(books, linked_to_dead(item.job, dead), now)
                self._core.hint({job.queue})
                return None

    async def delete(self, request: DeleteRequest) -> tuple[UUID, ...]:
        check_dead_ids(len(request.ids))
        gone = []
        for id in request.ids:
            letter = self._one(request, id)
            if letter is None:
                continue
            self._core.books.drop(letter.job)
            gone.append(id)
            self._tell(told(letter.job, letter.fingerprint, "deleted"))
            Audit(self._core, request.operation).deleted(letter.job, letter.review)
        return tuple(gone)

    async def follow(self, request: FollowRequest) -> FollowReply:
        check_serves_all(request)
        ended = [one for id in self._core.books.reviews if (one := self._ended(id)) is not None]
        for run in ended[: request.limit]:
            self._follow(run)
        return FollowReply(tuple(ended[: request.limit]), len(ended) > request.limit)

    def _ended(self, id: UUID) -> FollowedRun | None:
        books = self._core.books
        run = books.reviews[id].new_run
        if run is None or not run.is_open:
            return None
        new = books.jobs.get(run.job)
        if new is not None and not is_finished(new.state):
            return None
        return FollowedRun(id, books.jobs[id].tenant, run.job, None if new is None else new.state)

    def _follow(self, run: FollowedRun) -> None:
        books = self._core.books
        dead, new = books.jobs[run.id], books.jobs.get(run.job)
        settled_at = None if new is None else new.settled_at
        books.reviews[run.id] = followed(books.reviews[run.id], run.state, settled_at)
        if run.state is State.SUCCEEDED:
            entry = reprocess_success(dead, fingerprint_of(dead), run.job)
            self._tell(entry)
            after = {"new_job": str(run.job)}
            body = msgspec.json.encode(
                {"actor": "fairlane", "origin": "duty", "after": after}, order="sorted"
            )
            self._core.append("audit", msgspec.structs.replace(entry, subject=str(dead.id), body=body))

    def _tell(self, entry: NewEntry) -> None:
        self._core.append("events", entry)


def _place(job: JobRecord) -> tuple[Instant, bytes]:
    return job.settled_at or 0, job.id.bytes


def _cursor_after(letter: DeadLetter) -> str:
    return to_cursor(JobPosition(letter.job.settled_at or 0, letter.job.id))


def _cause(letter: DeadLetter) -> Cause:
    job = letter.job
    return letter.fingerprint, letter.error_class, job.tenant, job.queue, job.task, letter.review.review


def _tally(cause: Cause, group: list[DeadLetter]) -> DeadTally:
    """Count letters that have this in common; the last to die comes first."""
    fingerprint, error_class, tenant, queue, task, review = cause
    return DeadTally(
        fingerprint=fingerprint,
        error_class=error_class,
        tenant=tenant,
        queue=queue,
        task=task,
        review=review,
        letters=len(group),
        first_at=group[-1].job.settled_at or 0,
        last_at=group[0].job.settled_at or 0,
        sample=group[0].job.id,
    )
