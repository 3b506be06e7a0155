"""End claims because an operator says so (S72); condemn waiting jobs that are to be dead."""

from __future__ import annotations

from uuid import UUID

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.record_changes import settled, stopped
from fairlane.model.lifecycle.states import WAITING, Because, State, because
from fairlane.model.retry.decision import reconcile
from fairlane.model.retry.revoke import answer_revoke, settle_revoked
from fairlane.store.audit_entries import job_entries
from fairlane.store.contract.claims import RevokedJob, RevokeReply, RevokeRequest
from fairlane.store.sqlite.claims.settle import end_claim
from fairlane.store.sqlite.claims.spending import abandon_budget
from fairlane.store.sqlite.jobs.cancel import find_in_scope
from fairlane.store.sqlite.tables.job_tables import LiveJob, find_any, move
from fairlane.store.sqlite.transaction import Transaction


def revoke(tx: Transaction, request: RevokeRequest) -> RevokeReply:
    """End the claims of these jobs, one after the other; the model decides what becomes of each job."""
    answers = [_revoke_one(tx, request, id) for id in dict.fromkeys(request.ids)]
    return RevokeReply(tuple(answer for answer in answers if answer is not None))


def _revoke_one(tx: Transaction, request: RevokeRequest, id: UUID) -> RevokedJob | None:
    live = find_in_scope(tx, request, id)
    if live is None:
        finished = find_any(tx, (id,)).get(id)
        if finished is None or not request.scope.covers(finished.tenant):
            return None
        return RevokedJob(id, answer_revoke(finished, request.how), finished.state)
    answer = answer_revoke(live.job, request.how)
    after = _end(tx, request, live) if answer == "revoked" else live.job
    tx.append("audit", job_entries(request.operation, [(live.job, after)]))
    return RevokedJob(id, answer, after.state)


def _end(tx: Transaction, request: RevokeRequest, live: LiveJob) -> JobRecord:
    job = live.job
    if job.state in WAITING:
        reason = because(Because.CONDEMNED, request.reason)
        return move(tx, live, stopped(job, State.DEAD, reason, tx.now))
    settlement = settle_revoked(job, request.how, request.delay, request.reason)
    settlement = reconcile(job, settlement, tx.now)
    abandon_budget(tx, job)
    return end_claim(tx, live, settled(job, settlement, tx.now, request.attempts_kept))
