"""Peek at the next jobs of a queue, some per script; each script hands its state to the next."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from fairlane.model.errors import StoreBusy
from fairlane.model.instants import Instant
from fairlane.store.contract.jobs import PeekRequest
from fairlane.store.redis.client import RedisClient

_STEP: Final = 30
"""How many jobs one script returns."""

_MAX_TRIES: Final = 10


async def peek(client: RedisClient, request: PeekRequest) -> list[UUID]:
    """Return the ids of the jobs that claims would take now, in their order.

    Nothing is locked meanwhile: if claims have changed so much that the state no longer fits, it begins anew.
    """
    for _ in range(_MAX_TRIES):
        found = await _peek_once(client, request)
        if found is not None:
            return found
    message = (
        f"queue {request.queue} changes too fast for a look at its next {request.limit} jobs; ask for fewer"
    )
    raise StoreBusy(message)


async def _peek_once(client: RedisClient, request: PeekRequest) -> list[UUID] | None:
    found: list[bytes] = []
    now: Instant | None = None
    state = b""
    arguments = (request.queue, request.limit, request.scope.tenant or "", _STEP)
    while True:
        reply = await client.run("jobs/peek", *arguments, state, at=now)
        if not reply:
            return None
        now, ids, state = reply
        found += ids
        if not state:
            return [UUID(bytes=id) for id in found]
