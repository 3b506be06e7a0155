"""Do what people decide about dead letters, or delete them. The model decides what may follow what."""

from __future__ import annotations

from uuid import UUID

from fairlane.model.instants import Instant
from fairlane.model.journal import facts
from fairlane.model.lifecycle.states import State
from fairlane.model.review import reviewed
from fairlane.store.audit_entries import delete_entries, review_entries
from fairlane.store.contract.dead import DeleteRequest, ReviewReply, ReviewRequest, check_dead_ids
from fairlane.store.redis.records.job import StoredJob
from fairlane.store.redis.records.letter import read_review
from fairlane.store.redis.records.stored_jobs import JobUpdate, StoredJobs


async def review(stored_jobs: StoredJobs, request: ReviewRequest) -> tuple[ReviewReply, ...]:
    """Review each letter; the same one twice is reviewed twice."""
    check_dead_ids(len(request.ids))
    replies: list[ReviewReply | None] = [None] * len(request.ids)
    left = dict(enumerate(request.ids))
    while left:
        numbers = {id: number for number, id in reversed(left.items())}
        answers = await _review(stored_jobs, request, numbers)
        for id, number in numbers.items():
            replies[number] = answers.get(id, ReviewReply(id, "not_found"))
            del left[number]
    return tuple(one for one in replies if one is not None)


async def _review(
    stored_jobs: StoredJobs, request: ReviewRequest, ids: dict[UUID, int]
) -> dict[UUID, ReviewReply]:
    answers: dict[UUID, ReviewReply] = {}

    def decide(now: Instant, stored: StoredJob) -> JobUpdate | None:
        job = stored.job
        if job.state is not State.DEAD:
            return None
        before = read_review(stored.review)
        after = reviewed(before, request.action, request.who, request.note, now)
        if after is None:
            answers[job.id] = ReviewReply(job.id, "not_allowed", before.review)
            return None
        answers[job.id] = ReviewReply(job.id, "done", after.review)
        is_news = after.review != before.review
        return JobUpdate(
            stored,
            job,
            review=after,
            audit=review_entries(request.operation, job.id, job.tenant, before, after),
            events=(facts.reviewed(job, facts.fingerprint_of(job), after.review),) if is_news else (),
        )

    done = set(await stored_jobs.update(request.scope, ids, decide))
    return {id: one for id, one in answers.items() if one.answer != "done" or id in done}


async def delete(stored_jobs: StoredJobs, request: DeleteRequest) -> tuple[UUID, ...]:
    """Delete letters with their jobs, whatever was decided."""
    check_dead_ids(len(request.ids))

    def decide(_: Instant, stored: StoredJob) -> JobUpdate | None:
        job = stored.job
        if job.state is not State.DEAD:
            return None
        before = read_review(stored.review)
        audit = delete_entries(request.operation, job.id, job.tenant, before)
        return JobUpdate(
            stored, None, audit=audit, events=(facts.reviewed(job, facts.fingerprint_of(job), "deleted"),)
        )

    return await stored_jobs.update(request.scope, dict.fromkeys(request.ids), decide)
