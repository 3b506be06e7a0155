"""Statistics of a queue: its jobs by state, how many wait for a retry, how old the oldest ready job is.

The numbers by state come from counters. The rest comes from scanning a bounded number of jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from fairlane.app.admin.counts import tally_all
from fairlane.app.admin.paging import count_by_queue
from fairlane.model.instants import MINUTE, Instant, to_datetime
from fairlane.model.lifecycle.states import Because, State
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import PeekRequest, TallyRequest
from fairlane.store.contract.request import MAX_ROWS_READ, Request

MAX_LOOKED_AT: Final = 100_000
"""Default bound of a scan: at most this many delayed jobs, and as many ready ones."""

_AHEAD: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """The jobs of a queue at one instant, of all tenants.

    The numbers by state are exact. `retrying` counts the delayed jobs that wait for their next attempt, and
    `because` counts all delayed jobs by what they wait for: `time`, `retry`, `snooze` and so on. `oldest_at`
    is when the oldest ready job was enqueued, `oldest_minutes` how long ago. These come from scanning
    `looked_at` jobs: unless `is_complete`, more jobs may be retrying and an older one may exist.
    """

    name: str
    ready: int
    running: int
    delayed: int
    retrying: int
    dead: int
    succeeded: int
    cancelled: int
    because: Mapping[str, int]
    oldest_at: datetime | None
    oldest_minutes: float | None
    looked_at: int
    is_complete: bool


async def stats_of(
    store: Store, scope: Scope, queue: str | None, also: Iterable[str], limit: int
) -> dict[str, QueueStats]:
    """Return the statistics of one queue or of every queue of a scope, by name."""
    counts = await count_by_queue(store, scope, queue)
    for name in also:
        counts.setdefault(name, dict.fromkeys(State, 0))
    delayed = await tally_all(store, _waiting(scope, queue, State.DELAYED), limit)
    because: dict[str, dict[str, int]] = {}
    for one in delayed.tallies:
        reasons = because.setdefault(one.queue, {})
        reasons[one.reason] = reasons.get(one.reason, 0) + one.jobs
    oldest = await _oldest(store, _waiting(scope, queue, State.READY), counts, limit)
    now = (await store.registry.status(Request(scope=scope))).now
    looked_at = delayed.looked_at + oldest.looked_at
    return {
        name: QueueStats(
            name=name,
            ready=states[State.READY],
            running=states[State.RUNNING],
            delayed=states[State.DELAYED],
            retrying=because.get(name, {}).get(Because.RETRY.value, 0),
            dead=states[State.DEAD],
            succeeded=states[State.SUCCEEDED],
            cancelled=states[State.CANCELLED],
            because=because.get(name, {}),
            oldest_at=_moment(oldest.found.get(name)),
            oldest_minutes=_minutes(oldest.found.get(name), now),
            looked_at=looked_at,
            is_complete=delayed.cursor is None and name not in oldest.unsure,
        )
        for name, states in sorted(counts.items())
    }


def _waiting(scope: Scope, queue: str | None, state: State) -> TallyRequest:
    return TallyRequest(scope=scope, queue=queue, states=frozenset({state}))


@dataclass(frozen=True, slots=True)
class _Oldest:
    """The earliest enqueue of a ready job by queue, and the queues that may have an older one."""

    found: Mapping[str, Instant]
    unsure: frozenset[str]
    looked_at: int


async def _oldest(
    store: Store, request: TallyRequest, counts: Mapping[str, Mapping[State, int]], limit: int
) -> _Oldest:
    """Scan from the oldest job until every queue with ready jobs has one, or `limit` jobs were scanned."""
    wanted = {name for name, states in counts.items() if states[State.READY]}
    found: dict[str, Instant] = {}
    looked_at, is_more = 0, True
    while wanted - found.keys() and is_more and looked_at < limit:
        page = await store.jobs.tally(replace(request, limit=min(MAX_ROWS_READ, limit - looked_at)))
        for one in page.tallies:
            found.setdefault(one.queue, one.first_at)
        looked_at += page.looked_at
        is_more = page.cursor is not None
        request = replace(request, cursor=page.cursor)
    unsure = frozenset(wanted - found.keys()) if is_more else frozenset[str]()
    for name in unsure:
        # The scan ended among older jobs. The jobs to be claimed next are usually the oldest ready ones.
        ahead = await store.jobs.peek(PeekRequest(scope=request.scope, queue=name, limit=_AHEAD))
        if ahead:
            found[name] = min(job.enqueued_at for job in ahead)
    return _Oldest(found, unsure, looked_at)


def _moment(instant: Instant | None) -> datetime | None:
    return None if instant is None else to_datetime(instant)


def _minutes(instant: Instant | None, now: Instant) -> float | None:
    return None if instant is None else max(0, now - instant) / MINUTE
