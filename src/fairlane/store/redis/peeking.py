"""Look at the next jobs of a queue, some by each script; what one knows, the next one goes on from."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from fairlane.model.errors import StoreBusy
from fairlane.model.instants import Instant
from fairlane.store.contract.jobs import PeekRequest
from fairlane.store.redis.connect import Wire

_STEP: Final = 30
"""How many jobs one script looks at."""

_TRIES: Final = 10


async def peek(wire: Wire, request: PeekRequest) -> list[UUID]:
    """Give the ids of the jobs that claims would hand out now, in their order.

    Nothing is held meanwhile: if others have claimed so much that what was known does not fit what is stored,
    it begins anew.
    """
    for _ in range(_TRIES):
        found = await _look(wire, request)
        if found is not None:
            return found
    message = (
        f"queue {request.queue} changes too fast for a look at its next {request.most} jobs; ask for fewer"
    )
    raise StoreBusy(message)


async def _look(wire: Wire, request: PeekRequest) -> list[UUID] | None:
    found: list[bytes] = []
    now: Instant | None = None
    carry = b""
    words = (request.queue, request.most, request.scope.tenant or "", _STEP)
    while True:
        answer = await wire.run("peek", *words, carry, at=now)
        if not answer:
            return None
        now, ids, carry = answer
        found += ids
        if not carry:
            return [UUID(bytes=id) for id in found]
