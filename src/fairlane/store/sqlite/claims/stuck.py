"""Take back claims that are stuck: they are older than they may be, although their worker reports."""

from __future__ import annotations

from fairlane.model.journal import facts
from fairlane.model.lifecycle.record_changes import settled
from fairlane.model.retry.decision import reconcile
from fairlane.model.retry.stuck import STUCK_FACTOR, settle_stuck
from fairlane.store.contract.claims import StuckReply, StuckRequest, stuck_claim
from fairlane.store.sqlite.claims.settle import end_claim
from fairlane.store.sqlite.claims.spending import abandon_budget
from fairlane.store.sqlite.query import all_rows
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_tables import read_live
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("claims")


def take_stuck(tx: Transaction, request: StuckRequest) -> StuckReply:
    """End stuck claims, oldest first; the model decides what becomes of each job."""
    values = (tx.now, request.started_after, STUCK_FACTOR, request.limit + 1)
    rows = all_rows(tx.db, _SQL.stuck, values)
    taken = []
    for row in rows[: request.limit]:
        live = read_live(row)
        settlement = reconcile(live.job, settle_stuck(live.job, tx.now), tx.now)
        abandon_budget(tx, live.job)
        after = end_claim(tx, live, settled(live.job, settlement, tx.now, request.attempts_kept))
        taken.append(stuck_claim(live.job, after.state))
        tx.append("events", [facts.stuck(live.job, after.state)])
    return StuckReply(tuple(taken), len(rows) > request.limit)
