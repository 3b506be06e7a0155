"""Forget a tenant, or purge waiting jobs: bounded sweeps over jobs in the order of enqueue (S52)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.record_changes import scrubbed, stopped
from fairlane.model.lifecycle.states import WAITING, Because, State, because, is_finished
from fairlane.model.review import scrubbed_review
from fairlane.store.contract.request import MAX_ROWS_READ, JobPosition, from_cursor, to_cursor
from fairlane.store.contract.upkeep import ForgetReply, ForgetRequest, PurgeReply, PurgeRequest
from fairlane.store.redis.budgets import forget_spender
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.history import forget_batches
from fairlane.store.redis.jobs.cancel import request_cancellation
from fairlane.store.redis.jobs.find import position_of
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.records.job import StoredJob, to_attempts, to_body
from fairlane.store.redis.records.letter import read_review
from fairlane.store.redis.records.stored_jobs import PAGE, JobUpdate, Position, StoredJobs


async def forget(client: RedisClient, request: ForgetRequest) -> ForgetReply:
    """Cancel and scrub the jobs of a tenant. Running ones are asked to cancel and left to a next call."""
    tenant = request.scope.tenant
    if tenant is None:
        message = "forget needs the scope of one tenant"
        raise ValueError(message)
    stored_jobs = StoredJobs(client)
    position = _start(request.cursor)
    running = await _cancel_running(stored_jobs, request, tenant)
    reason = because(Because.PURGED, request.reason)

    def is_full(stored: StoredJob) -> bool:
        job = stored.job
        if job.state is State.RUNNING:
            return False
        review = read_review(stored.review)
        return not is_finished(job.state) or job != scrubbed(job) or review != scrubbed_review(review)

    def scrub(now: Instant, stored: StoredJob) -> JobUpdate:
        return _scrubbed(stored, reason, now)

    key = NAMES["by_tenant"] + tenant
    done, cursor = await _sweep(stored_jobs, key, position, request.limit, is_full, scrub)
    if cursor is None:
        await _forget_keys(client, tenant)
        await forget_batches(client, tenant)
        await forget_spender(client, tenant, is_running=running > 0)
    return ForgetReply(done, running, cursor)


async def purge(client: RedisClient, request: PurgeRequest) -> PurgeReply:
    """Cancel waiting jobs of a queue or task."""
    tenant = request.scope.tenant
    reason = because(Because.PURGED, request.reason)

    def is_meant(stored: StoredJob) -> bool:
        return request.queue in {None, stored.job.queue} and request.task in {None, stored.job.task}

    def end(now: Instant, stored: StoredJob) -> JobUpdate:
        return JobUpdate(stored, stopped(stored.job, State.CANCELLED, reason, now))

    key = NAMES["all"] if tenant is None else NAMES["by_tenant"] + tenant
    start = _start(request.cursor)
    return PurgeReply(
        *await _sweep(StoredJobs(client), key, start, request.limit, is_meant, end, states=WAITING)
    )


async def _sweep(
    stored_jobs: StoredJobs,
    key: str,
    position: Position | None,
    limit: int,
    is_meant: Callable[[StoredJob], bool],
    becomes: Callable[[Instant, StoredJob], JobUpdate],
    *,
    states: Iterable[State] = (),
) -> tuple[int, str | None]:
    """Update jobs in the order of enqueue, from a position on. Return how many, and a cursor to go on.

    If states are named, jobs in other states are not even read.
    """
    done = seen = 0
    while True:
        now, page = await stored_jobs.page(key, up=True, start=position, limit=PAGE, states=states)
        meant = [stored for _, stored in page if stored is not None and is_meant(stored)]
        updates = [becomes(now, stored) for stored in meant[: limit - done]]
        done += len(await stored_jobs.write(updates, now))
        if len(meant) > len(updates):
            # One that changed meanwhile counts as done: it moved after this sweep had passed.
            last = updates[-1].stored.job if updates else None
            return done, _cursor(position if last is None else position_of(last))
        seen += len(page)
        position = page[-1][0] if page else position
        if len(page) < PAGE:
            return done, None
        if seen >= MAX_ROWS_READ:
            return done, _cursor(position)


async def _cancel_running(stored_jobs: StoredJobs, request: ForgetRequest, tenant: str) -> int:
    """Request cancellation of all running jobs of a tenant. Return how many there are."""
    reason = because(Because.ASKED, request.reason)
    position: Position | None = None
    running = 0
    while True:
        now, page = await stored_jobs.page(NAMES["leases"], up=True, start=position, limit=PAGE)
        own = [stored for _, stored in page if stored is not None and stored.job.tenant == tenant]
        await stored_jobs.write([request_cancellation(stored, reason) for stored in own], now)
        running += len(own)
        if len(page) < PAGE:
            return running
        position = page[-1][0]


async def _forget_keys(client: RedisClient, tenant: str) -> None:
    """Remove the idempotency keys of a tenant."""
    start, looked = 0, PAGE
    while looked == PAGE:
        looked, removed = await client.run("upkeep/prune_keys", "", tenant, start, PAGE)
        start += looked - removed


def _scrubbed(stored: StoredJob, reason: str, now: Instant) -> JobUpdate:
    job: JobRecord = stored.job
    if not is_finished(job.state):
        job = stopped(job, State.CANCELLED, reason, now)
    empty = scrubbed(job)
    return JobUpdate(
        stored,
        empty,
        body=to_body(empty),
        attempts=to_attempts(empty),
        result=empty.result,
        review=scrubbed_review(read_review(stored.review)) if stored.review else None,
    )


def _start(cursor: str | None) -> Position | None:
    position = None if cursor is None else from_cursor(cursor)
    return None if position is None else (position.enqueued_at, position.id.bytes)


def _cursor(position: Position | None) -> str | None:
    return None if position is None else to_cursor(JobPosition(position[0], UUID(bytes=position[1])))
