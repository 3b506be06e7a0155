"""Purge: cancel waiting jobs that match, in bounded passes with a cursor."""

from __future__ import annotations

from typing import Annotated

import msgspec

from fairlane.model.lifecycle.record_changes import stopped
from fairlane.model.lifecycle.states import Because, State, because
from fairlane.store.contract.request import MAX_ROWS_READ, from_cursor, to_cursor
from fairlane.store.contract.upkeep import PurgeReply, PurgeRequest
from fairlane.store.sqlite.query import all_rows
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_tables import move, read_live
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("upkeep")


class _Seq(msgspec.Struct, frozen=True, array_like=True):
    """Where a purge stopped: bodies are numbered in the order of their enqueue."""

    seq: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


def purge(tx: Transaction, request: PurgeRequest) -> PurgeReply:
    """Do one pass over the live jobs, in the order of their enqueue."""
    start = 0 if request.cursor is None else from_cursor(request.cursor, _Seq).seq
    edge = all_rows(tx.db, _SQL.edge_of_live, (start, MAX_ROWS_READ - 1))
    end = edge[0][0] if len(edge) > 1 else None
    values = (request.scope.tenant, request.queue, request.task, request.limit + 1, start, end)
    rows = all_rows(tx.db, _SQL.waiting, values)
    page, rest = rows[: request.limit], rows[request.limit :]
    reason = because(Because.PURGED, request.reason)
    for row in page:
        live = read_live(row)
        move(tx, live, stopped(live.job, State.CANCELLED, reason, tx.now))
    last = page[-1][0] if rest else end
    return PurgeReply(len(page), None if last is None else to_cursor(_Seq(last)))
