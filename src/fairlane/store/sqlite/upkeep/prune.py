"""Prune: delete finished jobs, results and keys past their retention, and return free space to the disk."""

from __future__ import annotations

from typing import Final

import msgspec

from fairlane.store.contract.upkeep import PruneReply, PruneRequest
from fairlane.store.sqlite.query import all_rows, one_value
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_tables import delete_finished, read_page
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("upkeep")

MAX_SHRINK_PAGES: Final = 1_000
"""How many pages one pass returns to the disk: 4 MB, about 20 ms."""


def prune(tx: Transaction, request: PruneRequest) -> PruneReply:
    """Delete what is past its retention, oldest first; keys and free space only when nothing else is left."""
    keep = request.retention
    by_state = (keep.succeeded, keep.cancelled, keep.dead, keep.results)
    by_name = (msgspec.json.encode(keep.queues).decode(), msgspec.json.encode(keep.tenants).decode())
    shortest = min(*by_state, *keep.queues.values(), *keep.tenants.values())
    values = (tx.now, request.scope.tenant, request.limit + 1, *by_state, *by_name, tx.now - shortest)
    over = read_page(tx, _SQL.finished, values)
    jobs = results = 0
    for seq, job in over[: request.limit]:
        if tx.now - (job.settled_at or tx.now) >= keep.keep(job.state, job.queue, job.tenant):
            delete_finished(tx, seq, job)
            jobs += 1
        else:
            tx.write(_SQL.delete_result, seq)
            results += 1
    if len(over) > request.limit:
        return PruneReply(jobs, results, 0, is_partial=True)
    tx.flush()
    keys = all_rows(tx.db, _SQL.delete_old_keys, (tx.now - keep.keys, request.scope.tenant))
    _shrink(tx)
    return PruneReply(jobs, results, len(keys))


def _shrink(tx: Transaction) -> None:
    """Return free pages to the disk, a part at a time; a quarter of the file stays free for the next jobs."""
    free, pages = one_value(tx.db, "PRAGMA freelist_count"), one_value(tx.db, "PRAGMA page_count")
    surplus = min(free - pages // 4, MAX_SHRINK_PAGES)
    if surplus > 0:
        all_rows(tx.db, f"PRAGMA incremental_vacuum({surplus})")
