"""Peek: the jobs that the next claims would return, in their order. Changes nothing."""

from __future__ import annotations

from uuid import UUID

from fairlane.model.instants import SECOND
from fairlane.model.job import JobRecord
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import ClaimRequest, QueueRequest
from fairlane.store.contract.jobs import PeekRequest
from fairlane.store.sqlite.claims.claim import ClaimPass
from fairlane.store.sqlite.tables.job_tables import find_any
from fairlane.store.sqlite.transaction import Transaction


def peek(tx: Transaction, request: PeekRequest) -> tuple[JobRecord, ...]:
    """Claim for nobody and roll back, in as many claims as their bounds demand."""
    tx.savepoint()
    ids: list[UUID] = []
    is_partial = True
    while is_partial and len(ids) < request.limit:
        left = request.limit - len(ids)
        queue_requests = (QueueRequest(request.queue, left),)
        claim = ClaimRequest(
            scope=Scope.all(), worker="", lease=SECOND, queue_requests=queue_requests, total=left
        )
        claim_pass = ClaimPass(tx, claim, only_tenant=request.scope.tenant)
        ids += [one.job.id for one in claim_pass.run()]
        is_partial = claim_pass.is_partial
        tx.flush()
    tx.rollback()
    found = find_any(tx, ids)
    return tuple(found[id] for id in ids)
