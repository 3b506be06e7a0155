"""The claims facet: claimed, renewed, settled, promoted, reclaimed, expired."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec

from fairlane.model.fairness import correction
from fairlane.model.job import JobRecord
from fairlane.model.judge import heed, lose
from fairlane.model.lifecycle import Because, State, because, is_finished
from fairlane.model.moves import lost, promoted, settled, stopped
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import (
    ClaimReply,
    ClaimRequest,
    ExpireReply,
    Lost,
    PassRequest,
    PromoteReply,
    ReclaimReply,
    ReclaimRequest,
    RenewReply,
    RenewRequest,
    Settled,
    SettleReply,
    SettleRequest,
    WorkerRequest,
)
from fairlane.store.contract.request import check_serves_all
from fairlane.store.sqlite.asking import all_rows, one_row
from fairlane.store.sqlite.handout import Handout, next_due
from fairlane.store.sqlite.homes import Held, find_live, move, read_live
from fairlane.store.sqlite.joining import Joining
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.successes import settle_successes
from fairlane.store.sqlite.tx import Tx
from fairlane.store.sqlite.waking import Waking, give_back, hint_at_gate
from fairlane.store.sqlite.writer import Reader, Writer

_SQL = load("settle")
_CLAIM = load("claim")

_pack = msgspec.msgpack.Encoder().encode


class SqliteClaims:
    """Jobs as workers and duties move them."""

    turns_at_once: Final = 1
    """It works in this process: handlers that run meanwhile would only be in its way."""

    def __init__(self, writer: Writer, reader: Reader, joining: Joining) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader
        self._joining = joining

    async def claim(self, request: ClaimRequest) -> ClaimReply:
        """See the contract."""
        check_serves_all(request)
        return await self._writer.run(lambda tx: _claim(tx, request))

    async def renew(self, request: RenewRequest) -> RenewReply:
        """See the contract."""
        return await self._writer.run(lambda tx: _renew(tx, request))

    async def settle(self, request: SettleRequest) -> SettleReply:
        """See the contract: settling and claiming share a commit."""
        if request.claim is not None:
            check_serves_all(request.claim)
        return await self._writer.run(lambda tx: _settle(tx, request))

    async def settle_in(self, connection: Any, request: SettleRequest) -> SettleReply:
        """See the contract."""
        alone = msgspec.structs.replace(request, claim=None)
        return self._joining.run(connection, lambda tx: _settle(tx, alone))

    async def asked_to_cancel(self, request: WorkerRequest) -> tuple[UUID, ...]:
        """See the contract."""

        def read(tx: Tx) -> tuple[UUID, ...]:
            rows = tx.db.execute(_SQL.asked, (request.worker,))
            return tuple(UUID(bytes=id) for id, tenant in rows if request.scope.covers(tenant))

        return await self._reader.run(read)

    async def reclaim(self, request: ReclaimRequest) -> ReclaimReply:
        """See the contract."""
        check_serves_all(request)
        return await self._writer.run(lambda tx: _reclaim(tx, request))

    async def promote(self, request: PassRequest) -> PromoteReply:
        """See the contract."""
        check_serves_all(request)
        return await self._writer.run(lambda tx: _promote(tx, request))

    async def expire(self, request: PassRequest) -> ExpireReply:
        """See the contract."""
        check_serves_all(request)
        return await self._writer.run(lambda tx: _expire(tx, request))


def _claim(tx: Tx, request: ClaimRequest) -> ClaimReply:
    handout = Handout(tx, request)
    claims = handout.run()
    if len(claims) >= request.total:
        return ClaimReply(tuple(claims))
    queues = dict.fromkeys(wish.queue for wish in request.wishes)
    return ClaimReply(tuple(claims), next_due(tx, queues), handout.is_partial)


def _held(tx: Tx, scope: Scope, worker: str, id: UUID, fence: int) -> Held | None:
    held = find_live(tx, id)
    if held is None or not scope.covers(held.job.tenant):
        return None
    job = held.job
    return held if (job.state, job.fence, job.worker) == (State.RUNNING, fence, worker) else None


def _renew(tx: Tx, request: RenewRequest) -> RenewReply:
    lease_until = tx.now + request.lease
    stale, asked = [], []
    for renewal in request.renewals:
        held = _held(tx, request.scope, request.worker, renewal.id, renewal.fence)
        if held is None:
            stale.append(renewal.id)
            continue
        _charge_time(tx, held, is_final=False)
        progress = None if renewal.progress is None else _pack(renewal.progress)
        tx.db.execute(_SQL.renewed, (lease_until, progress, held.charged, held.seq))
        if held.job.is_cancel_asked:
            asked.append(renewal.id)
    return RenewReply(tuple(stale), tuple(asked), lease_until)


def _settle(tx: Tx, request: SettleRequest) -> SettleReply:
    done, stale = [], []
    plain = settle_successes(tx, request)
    seen: set[int] = set()  # by the numbers of their ids: `UUID` computes its hash in Python
    for asked in request.settlements:
        number = asked.id.int
        if number in plain:
            plain.remove(number)
            seen.add(number)
            done.append(Settled(asked.id, State.SUCCEEDED))
            continue
        if number in seen:
            tx.flush()  # the same job twice in a batch: the second must see what the first did
        seen.add(number)
        held = _held(tx, request.scope, request.worker, asked.id, asked.fence)
        if held is None:
            stale.append(asked.id)
            continue
        settlement = heed(held.job, asked, tx.now)
        if held.charged is not None and settlement.outcome in {"succeeded", "failed"}:
            took = tx.now - (held.job.started_at or tx.now)
            tx.shelves.estimates.learn((held.job.queue, held.job.task), took)
        after = _end(tx, held, settled(held.job, settlement, tx.now))
        done.append(Settled(after.id, after.state))
    if request.claim is not None:
        tx.flush()
    claimed = None if request.claim is None else _claim(tx, request.claim)
    return SettleReply(tuple(done), tuple(stale), claimed)


def _end(tx: Tx, held: Held, after: JobRecord) -> JobRecord:
    """Take a job out of its claim: its time, its place at the gate, its tenant's limit."""
    _charge_time(tx, held, is_final=True)
    turn = tx.turns.strand_by_id(held.strand).turn
    move(tx, held, after)
    give_back(tx, turn)
    if held.gate is not None:
        tx.shelves.gates.set(held.gate, tx.shelves.gates[held.gate].measure - 1)
        hint_at_gate(tx, held.gate)
    if not is_finished(after.state):
        tx.hint(after.queue)
    return after


def _charge_time(tx: Tx, held: Held, *, is_final: bool) -> None:
    """Charge the time that an attempt really took; at a renewal only what is beyond the charge so far."""
    seen = tx.now - (held.job.started_at or tx.now)
    if held.charged is None or (not is_final and seen <= held.charged):
        return
    turn = tx.turns.strand_by_id(held.strand).turn
    tx.turns.charge(turn, correction(tx.rules.stride(turn.tenant, tx.now), held.charged, seen))
    held.charged = seen


def _reclaim(tx: Tx, request: ReclaimRequest) -> ReclaimReply:
    by = tx.now if request.lapsed_by is None else min(tx.now, request.lapsed_by)
    rows = all_rows(tx.db, _SQL.lapsed, (by, request.most + 1))
    taken = []
    for row in rows[: request.most]:
        held = read_live(row)
        job = held.job
        loss = lose(job, was_alone=held.is_alone, max_crashes=request.max_crashes)
        _end(tx, held, lost(job, loss, tx.now))
        taken.append(Lost(job.id, job.tenant, job.queue, str(job.worker), job.fence, loss.state))
    is_idle = not rows and not one_row(tx.db, _SQL.is_any_held)
    return ReclaimReply(tuple(taken), len(rows) > request.most, is_idle)


def _promote(tx: Tx, request: PassRequest) -> PromoteReply:
    queues = [queue for (queue,) in all_rows(tx.db, _CLAIM.queues_with_delayed)]
    due: list[Held] = []
    for queue in queues:
        due += map(read_live, all_rows(tx.db, _CLAIM.due, (queue, tx.now, request.most + 1)))
    due.sort(key=lambda held: (held.job.run_at, held.job.id.bytes))
    for held in due[: request.most]:
        move(tx, held, promoted(held.job))
        tx.hint(held.job.queue)
    tx.flush()
    is_partial = len(due) > request.most
    known = [queue for (queue,) in all_rows(tx.db, _CLAIM.queues)]
    for queue in known:
        waking = Waking(tx, queue)
        if waking.run():
            tx.hint(queue)
        is_partial = is_partial or waking.is_partial
    tx.flush()
    return PromoteReply(len(due[: request.most]), next_due(tx, known), is_partial)


def _expire(tx: Tx, request: PassRequest) -> ExpireReply:
    rows = all_rows(tx.db, _SQL.expired, (tx.now, request.most + 1))
    for row in rows[: request.most]:
        held = read_live(row)
        move(tx, held, stopped(held.job, State.CANCELLED, because(Because.EXPIRED), tx.now))
    return ExpireReply(len(rows[: request.most]), len(rows) > request.most)
