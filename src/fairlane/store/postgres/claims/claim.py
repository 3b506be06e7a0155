"""Claim ready jobs. Each queue is one call and one transaction; who is served next is decided in SQL."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from fairlane.model.guards.breaker import BreakerState
from fairlane.model.instants import Instant, Micros
from fairlane.model.job import Claim
from fairlane.store.breaker_changes import open_breakers
from fairlane.store.contract.breakers import BreakerKey, OpenBreakers
from fairlane.store.contract.claims import ClaimReply, ClaimRequest, QueueRequest
from fairlane.store.postgres.rows import plain_uuid, read_record
from fairlane.store.postgres.statements import load

if TYPE_CHECKING:
    from fairlane.store.postgres.connection import Connection, Server


class QueueClaim(msgspec.Struct, frozen=True, kw_only=True):
    """One call of `claim` for one queue: what is left of the request, and what earlier calls have used up."""

    queue_request: QueueRequest
    total: int
    worker: str = ""
    lease: Micros = 1
    headroom: int = 0
    ahead: int = 0
    only: str | None = None
    is_again: bool = False
    parked: int = 0
    unparked: int = 0


class QueueClaimReply(msgspec.Struct, frozen=True):
    """What one call returned: the claims, and the last row of its `claim_reply`."""

    claims: tuple[Claim, ...]
    next_due_at: Instant | None
    is_partial: bool
    parked: int
    unparked: int
    is_ahead_cut: bool
    permits: tuple[UUID, ...] = ()
    open_breakers: OpenBreakers | None = None


async def claim(server: Server, request: ClaimRequest) -> ClaimReply:
    """Claim from one queue after the other until the total is reached or a job may not be claimed ahead."""
    claims: list[Claim] = []
    permits: list[UUID] = []
    next_due: dict[str, Instant | None] = {}
    unparked: dict[str, int] = {}
    parked, is_partial, is_ahead_cut = 0, False, False
    named: OpenBreakers | None = None
    without_work = await _queues_without_work(server, request)
    for queue_request in request.queue_requests:
        queue, total = queue_request.queue, request.total - len(claims)
        if total <= 0 or is_ahead_cut:
            break
        if queue in without_work:
            next_due[queue] = without_work[queue]
            continue
        call = QueueClaim(
            queue_request=queue_request,
            total=total,
            worker=request.worker,
            lease=request.lease,
            headroom=request.headroom,
            ahead=request.ahead,
            is_again=queue in next_due,
            parked=parked,
            unparked=unparked.get(queue, 0),
        )
        reply = await claim_queue(server, server, call)
        claims += reply.claims
        permits += reply.permits
        next_due[queue] = reply.next_due_at
        parked, unparked[queue] = reply.parked, reply.unparked
        is_partial = is_partial or reply.is_partial
        is_ahead_cut = reply.is_ahead_cut
        named = reply.open_breakers if claims and request.names_breakers else None
    if len(claims) >= request.total:
        return ClaimReply(tuple(claims), permits=tuple(permits), open_breakers=named)
    due = earliest(next_due.values())
    return ClaimReply(tuple(claims), due, is_partial, is_ahead_cut, tuple(permits), named)


async def claim_queue(runner: Server | Connection, server: Server, call: QueueClaim) -> QueueClaimReply:
    """Claim from one queue, in a transaction of its own, or in that of a connection."""
    rows: list[Any] = await runner.fetch(
        load("claim", server.schema).claim,
        server.now(),
        call.worker,
        call.lease,
        call.queue_request.queue,
        call.queue_request.limit,
        call.total,
        call.headroom,
        call.only,
        call.is_again,
        call.parked,
        call.unparked,
        call.ahead,
    )
    last = rows.pop()
    return QueueClaimReply(
        tuple([_read_claim(row) for row in rows]),
        last["next_due_at"],
        last["is_partial"],
        last["parked"],
        last["unparked"],
        last["is_ahead_cut"],
        tuple(map(plain_uuid, last["permits"] or ())),
        None if last["open_breakers"] is None else _read_breakers(last["open_breakers"]),
    )


def _read_breakers(text: str) -> OpenBreakers | None:
    named = json.loads(text)
    states = {
        BreakerKey(name, tenant): BreakerState(slots=slots, open_until=open_until)
        for name, tenant, slots, open_until in named["found"]
    }
    return open_breakers(states, named["now"])


async def _queues_without_work(server: Server, request: ClaimRequest) -> dict[str, Instant | None]:
    """Return the queues with nothing to do, and when there will be; asked only where it saves calls."""
    queues = {queue_request.queue for queue_request in request.queue_requests}
    if len(queues) < 2:  # noqa: PLR2004 (one look, or one claim)
        return {}
    rows = await server.fetch(load("claim", server.schema).check_queues, server.now(), sorted(queues))
    return {queue: next_due for queue, is_busy, next_due in rows if not is_busy}


def _read_claim(row: Any) -> Claim:
    job = read_record(row)
    return Claim(job, job.fence, job.lease_until or 0, bool(row["is_over_budget"]))


def earliest(times: Iterable[Instant | None]) -> Instant | None:
    """Return the first of these instants; None if there is none."""
    return min((time for time in times if time is not None), default=None)
