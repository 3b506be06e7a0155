"""Remove what has been kept long enough (S52): jobs, results, idempotency keys, earliest settled first."""

from __future__ import annotations

import msgspec

from fairlane.model.instants import Instant, Micros
from fairlane.model.lifecycle import FINISHED, State
from fairlane.model.retention import Retention
from fairlane.store.contract.upkeep import PruneReply, PruneRequest
from fairlane.store.redis.connect import Wire
from fairlane.store.redis.homes import PAGE, Change, Homes, Place
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.rows import NUMBERS, Kept


async def prune(wire: Wire, request: PruneRequest) -> PruneReply:
    """Do one bounded pass."""
    homes, keep = Homes(wire), request.retention
    now, _ = await homes.get(())
    over: dict[Place, Kept] = {}
    for state in FINISHED:
        over |= await _over(
            homes, request, f"{NAMES['finished']}{NUMBERS[state]}", now, _shortest(keep, state)
        )
    over |= await _over(homes, request, NAMES["results_kept"], now, keep.results)
    ordered = [kept for _, kept in sorted(over.items(), key=lambda one: one[0])]
    changes = [_pruned(kept, keep, now) for kept in ordered[: request.most]]
    done = set(await homes.write(changes, now))
    jobs = sum(change.job is None for change in changes if change.kept.job.id in done)
    if len(ordered) > request.most:
        return PruneReply(jobs, len(done) - jobs, 0, is_partial=True)
    keys = await _prune_keys(wire, request, now - keep.keys)
    await wire.run("tidy", PAGE)
    return PruneReply(jobs, len(done) - jobs, keys)


def _shortest(keep: Retention, state: State) -> Micros:
    """Give the shortest time for which any job of a state is kept."""
    return min((keep.keep(state, "", ""), *keep.queues.values(), *keep.tenants.values()))


def _is_over(kept: Kept, keep: Retention, now: Instant) -> bool:
    job = kept.job
    return now - (job.settled_at or now) >= keep.keep(job.state, job.queue, job.tenant)


def _is_result_over(kept: Kept, keep: Retention, now: Instant) -> bool:
    return bool(kept.job.result) and now - (kept.job.settled_at or now) >= keep.results


def _pruned(kept: Kept, keep: Retention, now: Instant) -> Change:
    if _is_over(kept, keep, now):
        return Change(kept, None)
    return Change(kept, msgspec.structs.replace(kept.job, result=b""), result=b"")


async def _over(
    homes: Homes, request: PruneRequest, key: str, now: Instant, least: Micros
) -> dict[Place, Kept]:
    """Read a sorted set as far as this pass may go: one more than it removes, among those old enough."""
    found: dict[Place, Kept] = {}
    place: Place | None = None
    while len(found) <= request.most:
        _, page = await homes.walk(key, up=True, start=place, most=PAGE, stop=now - least)
        for where, kept in page:
            is_mine = kept is not None and request.scope.covers(kept.job.tenant)
            if (
                kept is not None
                and is_mine
                and (_is_over(kept, request.retention, now) or _is_result_over(kept, request.retention, now))
            ):
                found[where] = kept
        if len(page) < PAGE:
            break
        place = page[-1][0]
    return found


async def _prune_keys(wire: Wire, request: PruneRequest, settled: Instant) -> int:
    """Remove keys whose time is over and whose jobs are gone; say how many."""
    total, start, looked = 0, 0, PAGE
    while looked == PAGE:
        looked, removed = await wire.run("keys_out", settled, request.scope.tenant or "", start, PAGE)
        total += removed
        start += looked - removed
    return total
