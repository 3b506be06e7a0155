"""Reclaim jobs whose lease has expired: their worker died, hangs or lost the file."""

from __future__ import annotations

from fairlane.model.lifecycle.record_changes import lost
from fairlane.model.retry.decision import lose_lease
from fairlane.store.contract.claims import LostClaim, ReclaimReply, ReclaimRequest
from fairlane.store.sqlite.claims.settle import end_claim
from fairlane.store.sqlite.claims.spending import abandon_budget
from fairlane.store.sqlite.query import all_rows, one_row
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_tables import read_live
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("claims")


def reclaim(tx: Transaction, request: ReclaimRequest) -> ReclaimReply:
    """End the claims whose lease has expired, earliest first; the model decides what becomes of each job."""
    by = tx.now if request.expired_by is None else min(tx.now, request.expired_by)
    rows = all_rows(tx.db, _SQL.expired_leases, (by, request.limit + 1))
    taken = []
    for row in rows[: request.limit]:
        live = read_live(row)
        job = live.job
        loss = lose_lease(job)
        abandon_budget(tx, job)
        end_claim(tx, live, lost(job, loss, tx.now, request.attempts_kept))
        taken.append(LostClaim(job.id, job.tenant, job.queue, str(job.worker), job.fence, loss.state))
    is_idle = not rows and not one_row(tx.db, _SQL.is_any_running)
    return ReclaimReply(tuple(taken), len(rows) > request.limit, is_idle)
