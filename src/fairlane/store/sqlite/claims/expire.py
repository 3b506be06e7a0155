"""Expire waiting jobs whose time is over: they are cancelled."""

from __future__ import annotations

from fairlane.model.lifecycle.record_changes import stopped
from fairlane.model.lifecycle.states import Because, State, because
from fairlane.store.contract.claims import ExpireReply, PassRequest
from fairlane.store.sqlite.query import all_rows
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_tables import move, read_live
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("claims")


def expire(tx: Transaction, request: PassRequest) -> ExpireReply:
    """Cancel waiting jobs whose expiry has passed, earliest first."""
    rows = all_rows(tx.db, _SQL.expired, (tx.now, request.limit + 1))
    for row in rows[: request.limit]:
        live = read_live(row)
        move(tx, live, stopped(live.job, State.CANCELLED, because(Because.EXPIRED), tx.now))
    return ExpireReply(len(rows[: request.limit]), len(rows) > request.limit)
