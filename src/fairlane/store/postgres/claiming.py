"""Hand out jobs and keep queues moving. Each queue is one call and one transaction; the order is in SQL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.job import Claim, JobRecord
from fairlane.store.contract.claims import ClaimReply, ClaimRequest, PassRequest, PromoteReply, Wish
from fairlane.store.postgres.rows import HOT_COLUMNS, hot_record
from fairlane.store.postgres.statements import load

if TYPE_CHECKING:
    from fairlane.store.postgres.connect import Connection, Server

_FENCE: Final = HOT_COLUMNS.index("fence")
_PARKED: Final = HOT_COLUMNS.index("failures")
_WOKEN: Final = HOT_COLUMNS.index("snoozes")
_IS_ALONE: Final = len(HOT_COLUMNS)


class Handout(msgspec.Struct, frozen=True):
    """What one queue gave, and what its call says for the next wish of the request."""

    claims: tuple[Claim, ...]
    next_due_at: Instant | None
    is_partial: bool
    parked: int
    woken: int


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One call: what is left of a request, and what its calls before have used up."""

    wish: Wish
    total: int
    headroom: int = 0
    isolates: bool = False
    only: str | None = None
    is_again: bool = False
    parked: int = 0
    woken: int = 0


async def claim(server: Server, request: ClaimRequest) -> ClaimReply:
    """See the contract."""
    claims: list[Claim] = []
    next_due: dict[str, Instant | None] = {}
    parked, is_partial = 0, False
    woken: dict[str, int] = {}
    idle = await _idle(server, request)
    for wish in request.wishes:
        total = request.total - len(claims)
        if total <= 0:
            break
        if wish.queue in idle:
            next_due[wish.queue] = idle[wish.queue]
            continue
        ask = Ask(
            wish=wish,
            total=total,
            headroom=request.headroom,
            isolates=request.isolates,
            is_again=wish.queue in next_due,
            parked=parked,
            woken=woken.get(wish.queue, 0),
        )
        rows = await server.fetch(_claim(server), *_values(server, request.worker, request.lease, ask))
        handout = read_handout(rows)
        claims += handout.claims
        next_due[wish.queue] = handout.next_due_at
        parked, woken[wish.queue] = handout.parked, handout.woken
        is_partial = is_partial or handout.is_partial
    if len(claims) >= request.total:
        return ClaimReply(tuple(claims))
    return ClaimReply(tuple(claims), _earliest(next_due.values()), is_partial)


async def claim_on(connection: Connection, server: Server, ask: Ask) -> Handout:
    """Claim for nobody inside a transaction that its owner takes back."""
    return read_handout(await connection.fetch(_claim(server), *_values(server, "", 1, ask)))


def read_handout(rows: list[Any]) -> Handout:
    """Read the jobs that a call gave, and its last row, which is none."""
    *jobs, rest = rows
    return Handout(
        tuple(_read_claim(hot_record(row), is_alone=row[_IS_ALONE]) for row in jobs),
        rest[_FENCE],
        rest[_IS_ALONE],
        rest[_PARKED],
        rest[_WOKEN],
    )


async def promote(server: Server, request: PassRequest) -> PromoteReply:
    """See the contract: one transaction for each queue."""
    sql = load("claim", server.schema)
    queues = await server.fetch(sql.promote_plan, server.now(), request.most)
    promoted, is_partial = 0, False
    times: list[Instant | None] = []
    for queue, due, is_more in queues:
        (row,) = await server.fetch(sql.promote, server.now(), queue, due)
        promoted += row[0]
        is_partial = is_partial or is_more or row[2]
        times.append(row[3])
        if row[1]:
            server.hint((queue,))
    return PromoteReply(promoted, _earliest(times), is_partial)


async def _idle(server: Server, request: ClaimRequest) -> dict[str, Instant | None]:
    """Name the queues with nothing to do, and when there will be; asked only where it saves calls."""
    queues = {wish.queue for wish in request.wishes}
    if len(queues) < 2:  # noqa: PLR2004 (one look, or one claim)
        return {}
    rows = await server.fetch(load("claim", server.schema).look, server.now(), sorted(queues))
    return {queue: next_due for queue, is_busy, next_due in rows if not is_busy}


def _claim(server: Server) -> str:
    return str(load("claim", server.schema).claim)


def _values(server: Server, worker: str, lease: int, ask: Ask) -> tuple[Any, ...]:
    return (
        server.now(),
        worker,
        lease,
        ask.wish.queue,
        ask.wish.most,
        ask.total,
        ask.headroom,
        ask.isolates,
        ask.only,
        ask.is_again,
        ask.parked,
        ask.woken,
    )


def _read_claim(job: JobRecord, *, is_alone: bool) -> Claim:
    return Claim(job, job.fence, job.lease_until or 0, is_alone)


def _earliest(times: Iterable[Instant | None]) -> Instant | None:
    return min((time for time in times if time is not None), default=None)
