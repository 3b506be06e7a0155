"""Repeat a store's bounded calls page after page until they are through: count, purge, forget."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import msgspec

from fairlane.model.lifecycle.states import State
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import Count, CountRequest
from fairlane.store.contract.upkeep import ForgetReply, ForgetRequest, PurgeRequest


async def count_all(store: Store, scope: Scope, queue: str | None = None) -> AsyncIterator[Count]:
    """Yield every counter of a scope, page after page."""
    request = CountRequest(scope=scope, queue=queue)
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
        counts.setdefault(count.queue, dict.fromkeys(State, 0))[count.state] += count.jobs
    return dict(counts)


async def purge_all(store: Store, request: PurgeRequest) -> int:
    """Cancel everything that waits; return how many jobs were cancelled."""
    cancelled = 0
    while True:
        reply = await store.upkeep.purge(request)
        cancelled += reply.cancelled
        if reply.cursor is None:
            return cancelled
        request = msgspec.structs.replace(request, cursor=reply.cursor)


async def forget_all(store: Store, request: ForgetRequest) -> ForgetReply:
    """Erase everything of a tenant except what still runs; the reply adds up all passes."""
    erased = 0
    while True:
        reply = await store.upkeep.forget(request)
        erased += reply.erased
        if reply.cursor is None:
            return ForgetReply(erased, reply.running)
        request = msgspec.structs.replace(request, cursor=reply.cursor)
