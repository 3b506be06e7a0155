"""Promote: make due delayed jobs ready and unpark what time allows, in all queues.

A claim does the same for its own queues; this is for queues whose workers only wait.
"""

from __future__ import annotations

from fairlane.model.lifecycle.record_changes import promoted
from fairlane.store.contract.claims import PassRequest, PromoteReply
from fairlane.store.sqlite.claims.claim import next_due
from fairlane.store.sqlite.claims.parking import UnparkPass
from fairlane.store.sqlite.query import all_rows
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_tables import LiveJob, move, read_live
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("claims")


def promote(tx: Transaction, request: PassRequest) -> PromoteReply:
    """Promote due jobs, earliest first, then unpark; wake workers of every queue that got work."""
    queues = [queue for (queue,) in all_rows(tx.db, _SQL.queues_with_delayed)]
    due: list[LiveJob] = []
    for queue in queues:
        due += map(read_live, all_rows(tx.db, _SQL.due, (queue, tx.now, request.limit + 1)))
    due.sort(key=lambda live: (live.job.run_at, live.job.id.bytes))
    for live in due[: request.limit]:
        move(tx, live, promoted(live.job))
        tx.hint(live.job.queue)
    tx.flush()
    is_partial = len(due) > request.limit
    known = [queue for (queue,) in all_rows(tx.db, _SQL.queues)]
    for queue in known:
        unpark = UnparkPass(tx, queue)
        if unpark.run():
            tx.hint(queue)
        is_partial = is_partial or unpark.is_partial
    tx.flush()
    return PromoteReply(len(due[: request.limit]), next_due(tx, known), is_partial)
