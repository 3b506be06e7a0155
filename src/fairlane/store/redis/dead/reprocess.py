"""Run dead letters again: store a new job and note it in the letter, in one step (S53, S75).

Python decides from what it has read; the script does it if the letter is still the same, and admits the job
as an enqueue does, but for the waiting limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.journal.facts import fingerprint_of, reprocess_requested
from fairlane.model.lifecycle.states import State
from fairlane.model.review import ReviewRecord, may_follow, reprocessed
from fairlane.store.audit_entries import reprocess_entries
from fairlane.store.contract.dead import Reprocessing, ReprocessReply, ReprocessRequest, check_reprocess
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.jobs.enqueue import to_refusal
from fairlane.store.redis.jobs.large_batch import split
from fairlane.store.redis.records.entries import encode_entries
from fairlane.store.redis.records.job import StoredJob, encode_new_jobs
from fairlane.store.redis.records.letter import read_review, write_change, write_review
from fairlane.store.redis.records.stored_jobs import StoredJobs

_MAX_WEIGHT: Final = 40
"""How much one script stores: half of what an enqueue does, since it writes the letters as well."""


async def reprocess(client: RedisClient, request: ReprocessRequest) -> tuple[ReprocessReply, ...]:
    """Reprocess each letter; one that changes meanwhile is read again."""
    check_reprocess(request)
    replies: dict[int, ReprocessReply] = {}
    left: Sequence[int] = range(len(request.items))
    while left:
        now, found = await StoredJobs(client).get(request.items[number].id for number in left)
        wanted: list[_Wanted] = []
        for number in left:
            decided = _decide(request, number, found.get(request.items[number].id), now)
            if isinstance(decided, _Wanted):
                wanted.append(decided)
            else:
                replies[number] = decided
        replies |= await _write(client, wanted, now)
        left = [one.number for one in wanted if one.number not in replies]
    return tuple(replies[number] for number in range(len(request.items)))


class _Wanted(msgspec.Struct, frozen=True):
    """A letter that may be reprocessed: as it was read, as it becomes, and the entries of the journals."""

    number: int
    item: Reprocessing
    stored: StoredJob
    review: ReviewRecord
    entries: bytes

    def arguments(self) -> tuple[bytes, ...]:
        """Return what `dead/reprocess.lua` takes for a letter."""
        return (
            self.item.id.bytes,
            self.stored.raw,
            self.stored.review,
            write_review(self.review),
            write_change(self.stored.job, self.review),
            self.entries,
        )


def _decide(
    request: ReprocessRequest, number: int, stored: StoredJob | None, now: Instant
) -> _Wanted | ReprocessReply:
    item = request.items[number]
    if (
        stored is None
        or stored.job.state is not State.DEAD
        or not request.scope.covers(stored.job.tenant)
        or stored.job.tenant != item.job.tenant
    ):
        return ReprocessReply(item.id, "not_found")
    job, record = stored.job, read_review(stored.review)
    if job.checksum != item.checksum:
        return ReprocessReply(item.id, "changed", review=record.review)
    if record.review == "reprocessed" and record.new_run is not None:
        return ReprocessReply(item.id, "already", record.new_run.job, record.review)
    if not may_follow(record, "reprocess"):
        return ReprocessReply(item.id, "not_allowed", review=record.review)
    audit = reprocess_entries(request.operation, job.id, job.tenant, item.job.id)
    entries = encode_entries("audit", audit) + encode_entries(
        "events", (reprocess_requested(job, fingerprint_of(job), item.job.id),)
    )
    after = reprocessed(record, item.job.id, request.who, request.note, now)
    return _Wanted(number, item, stored, after, entries)


async def _write(client: RedisClient, wanted: Sequence[_Wanted], now: Instant) -> dict[int, ReprocessReply]:
    """Write at the instant of the decision; return the replies by number, without letters that changed."""
    replies: dict[int, ReprocessReply] = {}
    for page in _pages(wanted):
        new_jobs = encode_new_jobs(one.item.job for one in page)
        items: list[Any] = [part for one in page for part in one.arguments()]
        answers = await client.run("dead/reprocess", new_jobs, *items, at=now)
        for one, answer in zip(page, answers, strict=True):
            if isinstance(answer, list):
                refusal = msgspec.structs.replace(to_refusal(one.item.job, answer), index=one.number)
                review = read_review(one.stored.review).review
                replies[one.number] = ReprocessReply(one.item.id, "refused", review=review, refusal=refusal)
            elif answer:
                new = one.item.job.id
                replies[one.number] = ReprocessReply(one.item.id, "reprocessed", new, one.review.review)
    return replies


def _pages(wanted: Sequence[_Wanted]) -> Iterator[Sequence[_Wanted]]:
    """Split into parts of which one script does each."""
    first = 0
    for part in split([one.item.job for one in wanted], _MAX_WEIGHT) if wanted else ():
        yield wanted[first : first + len(part)]
        first += len(part)
