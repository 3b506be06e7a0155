"""Prune what is past its retention (S52): jobs, results, idempotency keys, earliest settled first."""

from __future__ import annotations

import msgspec

from fairlane.model.instants import Instant, Micros
from fairlane.model.lifecycle.states import FINISHED, State
from fairlane.model.policy.retention import Retention
from fairlane.store.contract.upkeep import PruneReply, PruneRequest
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.records.job import NUMBERS, StoredJob
from fairlane.store.redis.records.stored_jobs import PAGE, JobUpdate, Position, StoredJobs


async def prune(client: RedisClient, request: PruneRequest) -> PruneReply:
    """Do one bounded pass."""
    stored_jobs, keep = StoredJobs(client), request.retention
    now, _ = await stored_jobs.get(())
    over: dict[Position, StoredJob] = {}
    for state in FINISHED:
        over |= await _over(
            stored_jobs, request, f"{NAMES['finished']}{NUMBERS[state]}", now, _shortest(keep, state)
        )
    over |= await _over(stored_jobs, request, NAMES["results_kept"], now, keep.results)
    ordered = [stored for _, stored in sorted(over.items(), key=lambda one: one[0])]
    updates = [_pruned(stored, keep, now) for stored in ordered[: request.limit]]
    done = set(await stored_jobs.write(updates, now))
    jobs = sum(update.job is None for update in updates if update.stored.job.id in done)
    if len(ordered) > request.limit:
        return PruneReply(jobs, len(done) - jobs, 0, is_partial=True)
    keys = await _prune_keys(client, request, now - keep.keys)
    await client.run("upkeep/prune_tenant_queues", PAGE)
    return PruneReply(jobs, len(done) - jobs, keys)


def _shortest(keep: Retention, state: State) -> Micros:
    """Return the shortest retention of any job of a state."""
    return min((keep.keep(state, "", ""), *keep.queues.values(), *keep.tenants.values()))


def _is_over(stored: StoredJob, keep: Retention, now: Instant) -> bool:
    job = stored.job
    return now - (job.settled_at or now) >= keep.keep(job.state, job.queue, job.tenant)


def _is_result_over(stored: StoredJob, keep: Retention, now: Instant) -> bool:
    return bool(stored.job.result) and now - (stored.job.settled_at or now) >= keep.results


def _pruned(stored: StoredJob, keep: Retention, now: Instant) -> JobUpdate:
    if _is_over(stored, keep, now):
        return JobUpdate(stored, None)
    return JobUpdate(stored, msgspec.structs.replace(stored.job, result=b""), result=b"")


async def _over(
    stored_jobs: StoredJobs, request: PruneRequest, key: str, now: Instant, retention: Micros
) -> dict[Position, StoredJob]:
    """Return the jobs of a sorted set that are old enough, one more than this pass may remove."""
    found: dict[Position, StoredJob] = {}
    position: Position | None = None
    while len(found) <= request.limit:
        _, page = await stored_jobs.page(key, up=True, start=position, limit=PAGE, stop=now - retention)
        for where, stored in page:
            is_mine = stored is not None and request.scope.covers(stored.job.tenant)
            if (
                stored is not None
                and is_mine
                and (
                    _is_over(stored, request.retention, now)
                    or _is_result_over(stored, request.retention, now)
                )
            ):
                found[where] = stored
        if len(page) < PAGE:
            break
        position = page[-1][0]
    return found


async def _prune_keys(client: RedisClient, request: PruneRequest, settled: Instant) -> int:
    """Remove keys past their retention whose jobs are gone. Return how many."""
    total, start, looked = 0, 0, PAGE
    while looked == PAGE:
        looked, removed = await client.run(
            "upkeep/prune_keys", settled, request.scope.tenant or "", start, PAGE
        )
        total += removed
        start += looked - removed
    return total
