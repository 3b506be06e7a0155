"""Explain why a job does not run now."""

from __future__ import annotations

from itertools import islice
from typing import Final

from fairlane.model.job import JobRecord
from fairlane.model.policy.overrides import Subject, SubjectKind
from fairlane.store.contract.filters import explain_by_state
from fairlane.store.contract.jobs import ExplainRequest, Why
from fairlane.store.contract.registry import LIVE_WITHIN
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.jobs.count import tasks_of
from fairlane.store.redis.records.stored_jobs import StoredJobs
from fairlane.store.redis.registry import read_workers

_MAX_AHEAD: Final = 10_000
_UNCOUNTED: Final = -1
_TASKS_PER_SCRIPT: Final = 50


async def explain(client: RedisClient, request: ExplainRequest) -> Why | None:
    """Return what holds a job, by its state or, if it is ready, by what the script finds."""
    stored_jobs = StoredJobs(client)
    while True:
        _, found = await stored_jobs.get((request.id,))
        stored = found.get(request.id)
        if stored is None or not request.scope.covers(stored.job.tenant):
            return None
        why = explain_by_state(stored.job) or await _explain_ready(client, stored.job)
        if why is not None:
            return why


async def _explain_ready(client: RedisClient, job: JobRecord) -> Why | None:
    """Return what holds a ready job; None if it is no longer ready."""
    found = await client.run("jobs/explain", job.id.bytes)
    if not found:
        return None
    reason, subject, until, ahead = found
    if ahead == _UNCOUNTED:
        ahead = await _count_ahead(client, job)
    ahead = min(ahead, _MAX_AHEAD)
    if reason:
        return Why(reason.decode(), subject.decode(), until or None, ahead)
    now, workers = await read_workers(client)
    is_served = any(job.queue in one.record.queues and now - one.beat_at <= LIVE_WITHIN for one in workers)
    queue = str(Subject(SubjectKind.QUEUE, job.queue))
    return Why("turn" if is_served else "no_worker", queue, None, ahead)


async def _count_ahead(client: RedisClient, job: JobRecord) -> int:
    """Count the jobs that go first of a tenant with many tasks, some tasks per script."""
    ahead, tasks = 0, iter(await tasks_of(client, job.queue, job.tenant))
    while ahead < _MAX_AHEAD and (some := tuple(islice(tasks, _TASKS_PER_SCRIPT))):
        found = await client.run("jobs/explain", job.id.bytes, *some)
        ahead += found[-1] if found else 0
    return ahead
