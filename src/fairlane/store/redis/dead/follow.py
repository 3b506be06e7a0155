"""Note in dead letters how the jobs in their place have ended."""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from fairlane.model.instants import Instant
from fairlane.model.journal.facts import fingerprint_of, reprocess_success
from fairlane.model.lifecycle.states import State
from fairlane.model.review import followed
from fairlane.store.audit_entries import success_entry
from fairlane.store.contract.dead import FollowedRun, FollowReply, FollowRequest
from fairlane.store.contract.request import MAX_ROWS_READ, check_serves_all
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.records.job import STATES, StoredJob
from fairlane.store.redis.records.letter import read_review
from fairlane.store.redis.records.stored_jobs import JobUpdate, StoredJobs

_PAGE: Final = 500
"""How many new jobs one script looks at."""

_GOES_ON: Final = "followed"
"""Where `meta` notes the member of `new_runs` after which the next pass begins."""


class _EndedRun(NamedTuple):
    """A new job that has ended; a state of None: it is gone."""

    job: UUID
    state: State | None
    settled_at: Instant | None


async def follow(client: RedisClient, request: FollowRequest) -> FollowReply:
    """Do one bounded pass."""
    check_serves_all(request)
    ended, is_partial = await _ended(client, request.limit)
    runs: dict[UUID, FollowedRun] = {}

    def decide(_: Instant, stored: StoredJob) -> JobUpdate | None:
        job, record = stored.job, read_review(stored.review)
        run = ended[job.id]
        if record.new_run is None or not record.new_run.is_open or record.new_run.job != run.job:
            return None
        runs[job.id] = FollowedRun(job.id, job.tenant, run.job, run.state)
        is_success = run.state is State.SUCCEEDED
        return JobUpdate(
            stored,
            job,
            review=followed(record, run.state, run.settled_at),
            audit=(success_entry(job.id, job.tenant, run.job),) if is_success else (),
            events=(reprocess_success(job, fingerprint_of(job), run.job),) if is_success else (),
        )

    done = await StoredJobs(client).update(request.scope, ended, decide)
    return FollowReply(tuple(runs[id] for id in done), is_partial)


async def _ended(client: RedisClient, limit: int) -> tuple[dict[UUID, _EndedRun], bool]:
    """Return new jobs that have ended, by the id of their letter, and whether there may be more.

    A pass that meets the bound of what it may read leaves the rest to the next one.
    """
    meta = client.keys("meta")
    start = await client.ask("HGET", meta, _GOES_ON) or b""
    found: dict[UUID, _EndedRun] = {}
    last, read = start, 0
    while True:
        number, last, ended = await client.run("dead/new_runs", last, _PAGE)
        for letter, job, state, settled_at in ended:
            if len(found) == limit:
                return found, True
            found[UUID(bytes=letter)] = _EndedRun(
                UUID(bytes=job), STATES.get(state), settled_at if state else None
            )
        read += number
        if number < _PAGE:
            if start:
                await client.ask("HDEL", meta, _GOES_ON)
            return found, False
        if read >= MAX_ROWS_READ:
            await client.ask("HSET", meta, _GOES_ON, last)
            return found, True
