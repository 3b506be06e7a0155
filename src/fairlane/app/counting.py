"""Add up what a store counts, and repeat its bounded passes until they are through. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping

from fairlane.model.lifecycle import State
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import CountRequest
from fairlane.store.contract.upkeep import ForgetReply, ForgetRequest, PurgeRequest


async def count_by_queue(
    store: Store, scope: Scope, queue: str | None = None
) -> dict[str, Mapping[State, int]]:
    """Count the jobs of a scope by queue; every state is there for each."""
    counts: dict[str, dict[State, int]] = {}
    for count in await store.jobs.count(CountRequest(scope=scope, queue=queue)):
        counts.setdefault(count.queue, dict.fromkeys(State, 0))[count.state] += count.jobs
    return dict(counts)


async def purge_all(store: Store, request: PurgeRequest) -> int:
    """Cancel everything that waits; the answer says how many were cancelled."""
    cancelled = 0
    while True:
        reply = await store.upkeep.purge(request)
        cancelled += reply.cancelled
        if not reply.is_partial:
            return cancelled


async def forget_all(store: Store, request: ForgetRequest) -> ForgetReply:
    """Erase everything of a tenant but what still runs; the answer adds up all passes."""
    erased = 0
    while True:
        reply = await store.upkeep.forget(request)
        erased += reply.erased
        if not reply.is_partial:
            return ForgetReply(erased, reply.running)
