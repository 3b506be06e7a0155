"""Promote due jobs, and unpark what may run again, in all queues."""

from __future__ import annotations

from fairlane.store.contract.claims import PassRequest, PromoteReply
from fairlane.store.contract.request import check_serves_all
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.script_loader import MAX_JOBS_PER_SCRIPT


async def promote(client: RedisClient, request: PassRequest) -> PromoteReply:
    """Promote with as many scripts as it takes, then unpark queue by queue."""
    check_serves_all(request)
    promoted, is_more = 0, True
    while is_more and promoted < request.limit:
        limit = min(MAX_JOBS_PER_SCRIPT, request.limit - promoted)
        count, is_more = await client.run("claims/promote", limit)
        promoted += count
    is_partial, instants = bool(is_more), []
    for queue in await client.ask("HKEYS", client.keys("queues")):
        unpark_pass, is_left, due = await client.run("claims/unpark", queue, b"")
        while unpark_pass:
            unpark_pass, is_left, due = await client.run("claims/unpark", queue, unpark_pass)
        is_partial = is_partial or bool(is_left)
        instants += [due] if due else []
    return PromoteReply(promoted, min(instants, default=None), is_partial)
