"""What is in a queue, in one answer: its jobs by state, how many of them retry, how long the oldest waits.

Counters answer for the states. What they do not know is looked at, a bounded number of jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from fairlane.app.counting import count_by_queue
from fairlane.app.counts import tally_all
from fairlane.model.instants import MINUTE, Instant, to_datetime
from fairlane.model.lifecycle import Because, State
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import PeekRequest, TallyRequest
from fairlane.store.contract.request import READ_MOST, Request

LOOK_MOST: Final = 100_000
"""How many jobs are looked at by default: so many that are delayed, and so many that are ready."""

_AHEAD: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """What is in a queue at one instant, of all tenants.

    The numbers by state are exact. `retrying` counts those of the delayed that wait for their next attempt,
    and `because` all of the delayed by what they wait for: `time`, `retry`, `snooze` and so on. `oldest_at`
    is when the oldest of the ready jobs was enqueued, and `oldest_minutes` how long ago that is. They come
    from looking at `looked_at` jobs; unless `is_complete`, there may be more that retry, and an older one.
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
    store: Store, scope: Scope, queue: str | None, also: Iterable[str], most: int
) -> dict[str, QueueStats]:
    """Give what is in each queue of a scope, or in one, by name."""
    counts = await count_by_queue(store, scope, queue)
    for name in also:
        counts.setdefault(name, dict.fromkeys(State, 0))
    delayed = await tally_all(store, _waiting(scope, queue, State.DELAYED), most)
    because: dict[str, dict[str, int]] = {}
    for one in delayed.tallies:
        words = because.setdefault(one.queue, {})
        words[one.word] = words.get(one.word, 0) + one.jobs
    oldest = await _oldest(store, _waiting(scope, queue, State.READY), counts, most)
    now = (await store.registry.pulse(Request(scope=scope))).now
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
    """The oldest enqueue of a ready job by queue, and the queues where there may be an older one."""

    found: Mapping[str, Instant]
    unsure: frozenset[str]
    looked_at: int


async def _oldest(
    store: Store, request: TallyRequest, counts: Mapping[str, Mapping[State, int]], most: int
) -> _Oldest:
    """Look from the oldest job on until each queue with ready jobs has met one, or at so many jobs."""
    wanted = {name for name, states in counts.items() if states[State.READY]}
    found: dict[str, Instant] = {}
    looked_at, is_more = 0, True
    while wanted - found.keys() and is_more and looked_at < most:
        page = await store.jobs.tally(replace(request, most=min(READ_MOST, most - looked_at)))
        for one in page.tallies:
            found.setdefault(one.queue, one.first_at)
        looked_at += page.looked_at
        is_more = page.cursor is not None
        request = replace(request, cursor=page.cursor)
    unsure = frozenset(wanted - found.keys()) if is_more else frozenset[str]()
    for name in unsure:
        # Not met: so many jobs that are kept are older. Those that come next are the oldest as a rule.
        ahead = await store.jobs.peek(PeekRequest(scope=request.scope, queue=name, most=_AHEAD))
        if ahead:
            found[name] = min(job.enqueued_at for job in ahead)
    return _Oldest(found, unsure, looked_at)


def _moment(instant: Instant | None) -> datetime | None:
    return None if instant is None else to_datetime(instant)


def _minutes(instant: Instant | None, now: Instant) -> float | None:
    return None if instant is None else max(0, now - instant) / MINUTE
