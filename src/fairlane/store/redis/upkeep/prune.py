"""Prune what is past its retention (S52): jobs, results, idempotency keys, earliest settled first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from uuid import UUID

import msgspec

from fairlane.model.finished_job import finished_job, pack_finished
from fairlane.model.instants import Instant
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.pressure import EarlyCut, early_cut
from fairlane.model.policy.prune_mark import PruneMark, Span, mark_after, spans
from fairlane.model.policy.retention import CountCuts, Retention
from fairlane.store.contract.upkeep import PruneReply, PruneRequest
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.records.job import NUMBERS, StoredJob
from fairlane.store.redis.records.letter import read_review
from fairlane.store.redis.records.stored_jobs import PAGE, JobUpdate, Position, StoredJobs
from fairlane.store.redis.size import read_size


async def prune(client: RedisClient, request: PruneRequest) -> PruneReply:
    """Do one bounded pass."""
    stored_jobs, keep = StoredJobs(client), request.retention
    now, _ = await stored_jobs.get(())
    early = await _early(client, request)
    cuts = await _cuts(client, keep, request.mark, early)
    over: dict[UUID, StoredJob] = {}
    for key, span in _sets(keep, now, cuts, request.mark):
        over |= await _over(stored_jobs, request, key, span, now, cuts)
    ordered = sorted(over.values(), key=lambda stored: (stored.job.settled_at or 0, stored.job.id.bytes))
    page = ordered[: request.limit]
    updates = [_pruned(stored, request, now, cuts) for stored in page]
    done = set(await stored_jobs.write(updates, now))
    written = [update for update in updates if update.stored.job.id in done]
    states = Counter(update.stored.job.state for update in written if update.job is None)
    reply = PruneReply(
        states.total(),
        len(written) - states.total(),
        states=dict(states),
        has_more_early=early.has_more,
        size=await read_size(client) if request.is_measured else None,
    )
    if len(ordered) > request.limit:
        mark = mark_after(request.mark, now, cuts, page[-1].job.settled_at or 0)
        return msgspec.structs.replace(reply, is_partial=True, mark=mark)
    keys = await _prune_keys(client, request, now - keep.keys)
    await client.run("upkeep/prune_tenant_queues", PAGE)
    return msgspec.structs.replace(reply, keys=keys, mark=mark_after(request.mark, now, cuts))


async def _early(client: RedisClient, request: PruneRequest) -> EarlyCut:
    """Return what goes early. A sweep that is under way has its cut, and does not know what comes after."""
    if not request.is_early or request.mark.is_under_way:
        return EarlyCut(has_more=request.is_early)
    states = (NUMBERS[State.SUCCEEDED], NUMBERS[State.CANCELLED])
    oldest = await client.run("upkeep/oldest", request.mark.cut, request.limit, *states)
    return early_cut(list(oldest), request.limit)


async def _cuts(client: RedisClient, keep: Retention, mark: PruneMark, early: EarlyCut) -> CountCuts:
    """Return the settlements of the last jobs that limits by number and by size keep."""
    if keep.newest_finished is None and keep.newest_dead is None:
        return CountCuts(mark.next_cut if mark.is_under_way else early.at)
    numbers = (NUMBERS[state] for state in (State.SUCCEEDED, State.CANCELLED, State.DEAD))
    newest = (keep.newest_finished or 0, keep.newest_dead or 0)
    finished, dead = await client.run("upkeep/newest", *newest, *numbers)
    return CountCuts(mark.next_cut if mark.is_under_way else max(finished, early.at), dead)


def _sets(keep: Retention, now: Instant, cuts: CountCuts, mark: PruneMark) -> Iterator[tuple[str, Span]]:
    """Yield the sorted sets that have what may be over, and between which scores."""
    without_results = msgspec.structs.replace(keep, results=keep.succeeded)  # they have a set of their own
    for state in (State.SUCCEEDED, State.CANCELLED):
        for span in spans(without_results, now, cuts, mark):
            yield f"{NAMES['finished']}{NUMBERS[state]}", span
    died_by = max(now - keep.shortest_dead, cuts.dead - 1)
    yield f"{NAMES['finished']}{NUMBERS[State.DEAD]}", Span(0, died_by)
    decided = NAMES["decided" if keep.is_from_review else "decided_by_death"]
    yield decided, Span(0, now - keep.dead_reviewed)
    for span in spans(keep, now, cuts, mark):
        yield NAMES["results_kept"], span


def _is_over(stored: StoredJob, keep: Retention, now: Instant, cuts: CountCuts) -> bool:
    return keep.is_over(stored.job, read_review(stored.review), now, cuts)


def _is_result_over(stored: StoredJob, keep: Retention, now: Instant) -> bool:
    return bool(stored.job.result) and now - (stored.job.settled_at or now) >= keep.results


def _pruned(stored: StoredJob, request: PruneRequest, now: Instant, cuts: CountCuts) -> JobUpdate:
    if _is_over(stored, request.retention, now, cuts):
        return JobUpdate(stored, None, archived=_archived(stored) if request.is_archived else b"")
    return JobUpdate(stored, msgspec.structs.replace(stored.job, result=b""), result=b"")


def _archived(stored: StoredJob) -> bytes:
    return pack_finished(finished_job(stored.job, read_review(stored.review)))


async def _over(
    stored_jobs: StoredJobs, request: PruneRequest, key: str, span: Span, now: Instant, cuts: CountCuts
) -> dict[UUID, StoredJob]:
    """Return what is over of a part of a sorted set, one more than this pass may remove."""
    keep = request.retention
    found: dict[UUID, StoredJob] = {}
    position: Position = (span.first, b"")
    while len(found) <= request.limit:
        _, page = await stored_jobs.page(key, up=True, start=position, limit=PAGE, stop=span.last)
        for _, stored in page:
            if stored is None or not request.scope.covers(stored.job.tenant):
                continue
            if _is_over(stored, keep, now, cuts) or _is_result_over(stored, keep, now):
                found[stored.job.id] = stored
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
