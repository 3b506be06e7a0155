"""Forget a tenant: stop its running jobs, cancel its waiting ones, scrub the contents, delete its keys.

Works in bounded passes: the reply has a cursor until all is done, and counts the jobs that still run.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.record_changes import scrubbed, stopped
from fairlane.model.lifecycle.states import Because, State, because, is_finished
from fairlane.store.contract.request import MAX_ROWS_READ, JobPosition, from_cursor, to_cursor
from fairlane.store.contract.upkeep import ForgetReply, ForgetRequest
from fairlane.store.sqlite.dead.letters import scrub_letter
from fairlane.store.sqlite.history import forget_batches
from fairlane.store.sqlite.jobs.cancel import request_cancel
from fairlane.store.sqlite.query import all_rows, one_value
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_tables import (
    find_live,
    move,
    read_live,
    read_page,
    rewrite_body,
    rewrite_finished,
)
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("upkeep")

_FIRST: Final = (0, b"")
_LAST: Final = (2**63 - 1, b"\xff" * 17)


def forget(tx: Transaction, request: ForgetRequest, tenant: str) -> ForgetReply:
    """Do one pass over a tenant's jobs, oldest enqueue first; the last deletes keys and names in budgets."""
    start = _FIRST
    if request.cursor is not None:
        position = from_cursor(request.cursor)
        start = (position.enqueued_at, position.id.bytes)
    for row in all_rows(tx.db, _SQL.running_of, (tenant,)):
        request_cancel(tx, read_live(row), because(Because.ASKED, request.reason))
    tx.flush()
    running = one_value(tx.db, _SQL.running_count, (tenant,))
    edge = all_rows(tx.db, _SQL.edge_of_bodies, (tenant, *start, MAX_ROWS_READ - 1))
    end = edge[0] if len(edge) > 1 else _LAST
    left = read_page(tx, _SQL.contents_of, (tenant, *start, *end, request.limit + 1))
    page, rest = left[: request.limit], left[request.limit :]
    for seq, job in page:
        _scrub(tx, seq, job, because(Because.PURGED, request.reason))
    if rest:
        last = page[-1][1]
        return ForgetReply(len(page), running, to_cursor(JobPosition(last.enqueued_at, last.id)))
    if end is not _LAST:
        return ForgetReply(len(page), running, to_cursor(JobPosition(end[0], UUID(bytes=end[1]))))
    tx.flush()
    tx.db.execute(_SQL.delete_keys_of, (tenant,))
    forget_batches(tx, tenant)
    tx.budgets.forget(tenant, is_running=running > 0)
    return ForgetReply(len(page), running)


def _scrub(tx: Transaction, seq: int, job: JobRecord, reason: str) -> None:
    if not is_finished(job.state):
        live = find_live(tx, job.id)
        if live is not None:
            job = move(tx, live, stopped(job, State.CANCELLED, reason, tx.now))
        tx.flush()
    empty = scrubbed(job)
    rewrite_body(tx, seq, empty)
    rewrite_finished(tx, seq, empty)
    if empty.state is State.DEAD:
        scrub_letter(tx, seq)
