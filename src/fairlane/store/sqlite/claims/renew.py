"""Renew leases, and tell a worker which of its jobs are asked to stop."""

from __future__ import annotations

from uuid import UUID

import msgspec

from fairlane.store.contract.claims import RenewReply, RenewRequest, WorkerRequest
from fairlane.store.sqlite.claims.settle import charge_time, running_claim
from fairlane.store.sqlite.claims.spending import report_spend
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_tables import rewrite_metadata
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("claims")

_pack = msgspec.msgpack.Encoder().encode


def renew(tx: Transaction, request: RenewRequest) -> RenewReply:
    """Extend the leases of claims that still stand, store what their handlers wrote; name the others."""
    lease_until = tx.now + request.lease
    stale, asked = [], []
    spent = [one for one in request.renewals if one.spent]
    if spent:
        report_spend(tx, request.scope, spent, is_over=False)
    for renewal in request.renewals:
        live = running_claim(tx, request.scope, request.worker, renewal.id, renewal.fence)
        if live is None:
            stale.append(renewal.id)
            continue
        charge_time(tx, live, is_final=False)
        progress = None if renewal.progress is None else _pack(renewal.progress)
        tx.db.execute(_SQL.renewed, (lease_until, progress, live.charged, live.seq))
        if renewal.metadata is not None:
            rewrite_metadata(tx, live.seq, renewal.metadata)
        if live.job.is_cancel_asked:
            asked.append(renewal.id)
    return RenewReply(tuple(stale), tuple(asked), lease_until)


def cancel_asked(tx: Transaction, request: WorkerRequest) -> tuple[UUID, ...]:
    """Return the worker's running jobs whose cancellation was requested."""
    rows = tx.db.execute(_SQL.cancel_requested, (request.worker,))
    return tuple(UUID(bytes=id) for id, tenant in rows if request.scope.covers(tenant))
