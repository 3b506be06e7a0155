"""Explain why a job is not running. Uses the same limits as a claim, so that both say the same."""

from __future__ import annotations

from fairlane.model.job import JobRecord
from fairlane.model.policy.overrides import Subject, SubjectKind
from fairlane.store.contract.filters import explain_by_state
from fairlane.store.contract.jobs import ExplainRequest, Why
from fairlane.store.contract.registry import LIVE_WITHIN
from fairlane.store.registry_records import read_worker
from fairlane.store.sqlite.claims.limits import queue_block, strand_block, tenant_block
from fairlane.store.sqlite.query import one_value
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_tables import find_any
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("find")


def explain(tx: Transaction, request: ExplainRequest) -> Why | None:
    """Return why a job waits, or None if there is no such job in the scope."""
    job = find_any(tx, (request.id,)).get(request.id)
    if job is None or not request.scope.covers(job.tenant):
        return None
    return explain_by_state(job) or _explain_ready(tx, job)


def _explain_ready(tx: Transaction, job: JobRecord) -> Why:
    tenant_queue = tx.tenant_queues.tenant_queue(job.queue, job.tenant)
    ahead = one_value(tx.db, _SQL.ahead, (tenant_queue.id, job.sort_key, job.id.bytes))
    subjects = (
        Subject(SubjectKind.QUEUE, job.queue),
        Subject(SubjectKind.TENANT, job.tenant),
        Subject(SubjectKind.TASK, job.task),
    )
    for subject in subjects:
        pause = tx.policies.paused(subject, tx.now)
        if pause is not None:
            return Why("paused", str(subject), pause.until, ahead)
    block = queue_block(tx, job.queue) or tenant_block(tx, tenant_queue)
    block = block or strand_block(tx, job.task, job.tenant)
    if block is not None:
        return Why(block.reason, str(block.subject), block.until, ahead)
    workers = tx.db.execute(_SQL.served, (tx.now - LIVE_WITHIN,))
    is_served = any(job.queue in read_worker(record).queues for (record,) in workers)
    return Why("turn" if is_served else "no_worker", str(subjects[0]), None, ahead)
