"""Repeat a store's bounded calls page after page until they are through: count, purge, forget."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import msgspec

from fairlane.app.admin.read_once import is_kept, is_reading_once, once
from fairlane.model.lifecycle.states import State
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import Count, CountRequest
from fairlane.store.contract.request import MAX_COUNTS, MAX_ROWS_READ
from fairlane.store.contract.schedules import (
    MAX_SCHEDULE_CHANGES,
    ScheduleChange,
    SchedulesListRequest,
    SchedulesWriteRequest,
)
from fairlane.store.contract.upkeep import ForgetReply, ForgetRequest, PurgeRequest


async def count_all(store: Store, scope: Scope, queue: str | None = None) -> AsyncIterator[Count]:
    """Yield every counter of a scope, page after page; those of one page of the dashboard are read once."""
    if not is_reading_once():
        async for count in _count(store, scope, queue):
            yield count
        return
    key = ("counts", scope)
    if queue is None or is_kept(key):
        every = await once(key, lambda: _listed(_count(store, scope)))
    else:
        every = await once((*key, queue), lambda: _listed(_count(store, scope, queue)))
    for count in every:
        if queue in {None, count.queue}:
            yield count


async def _listed(counts: AsyncIterator[Count]) -> list[Count]:
    return [count async for count in counts]


async def _count(store: Store, scope: Scope, queue: str | None = None) -> AsyncIterator[Count]:
    request = CountRequest(scope=scope, queue=queue, limit=MAX_COUNTS)
    while True:
        page = await store.jobs.count(request)
        for count in page.counts:
            yield count
        if page.cursor is None:
            return
        request = msgspec.structs.replace(request, cursor=page.cursor)


async def count_by_queue(
    store: Store, scope: Scope, queue: str | None = None
) -> dict[str, Mapping[State, int]]:
    """Count the jobs of a scope by queue; each queue has every state."""
    counts: dict[str, dict[State, int]] = {}
    async for count in count_all(store, scope, queue):
        of_queue = counts.get(count.queue)
        if of_queue is None:
            counts[count.queue] = of_queue = dict.fromkeys(State, 0)
        of_queue[count.state] += count.jobs
    return dict(counts)


def rows_read(found: int, limit: int, cursor: str | None) -> int:
    """Return how many rows a store has read for a page: one that is short and not the last, all it may (S51).

    >>> rows_read(50, 50, "more"), rows_read(3, 50, None), rows_read(3, 50, "more")
    (50, 3, 10000)
    """
    return found if cursor is None or found >= limit else MAX_ROWS_READ


async def purge_all(store: Store, request: PurgeRequest) -> int:
    """Cancel everything that waits; return how many jobs were cancelled."""
    cancelled = 0
    while True:
        reply = await store.upkeep.purge(request)
        cancelled += reply.cancelled
        if reply.cursor is None:
            return cancelled
        request = msgspec.structs.replace(request, cursor=reply.cursor)


async def forget_schedules(store: Store, tenant: str) -> int:
    """Remove the schedules of a tenant, with the arguments of their jobs; return how many."""
    request = SchedulesListRequest(scope=Scope(tenant), limit=MAX_SCHEDULE_CHANGES)
    removed = 0
    while True:
        rows = (await store.schedules.list(request)).rows
        if not rows:
            return removed
        removals = tuple(ScheduleChange(name=row.record.name, revision=row.revision) for row in rows)
        reply = await store.schedules.write(SchedulesWriteRequest(scope=Scope.all(), changes=removals))
        removed += sum(reply.is_made)


async def forget_all(store: Store, request: ForgetRequest) -> ForgetReply:
    """Erase everything of a tenant except what still runs; the reply adds up all passes."""
    erased = 0
    while True:
        reply = await store.upkeep.forget(request)
        erased += reply.erased
        if reply.cursor is None:
            return ForgetReply(erased, reply.running)
        request = msgspec.structs.replace(request, cursor=reply.cursor)
