"""Prune: delete finished jobs, results and keys past their retention, and return free space to the disk."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import msgspec

from fairlane.model.finished_job import FinishedJob, finished_job
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.pressure import EarlyCut, StoreSize, early_cut
from fairlane.model.policy.prune_mark import PruneMark, mark_after, spans
from fairlane.model.policy.retention import CountCuts, Retention
from fairlane.model.review import ReviewRecord
from fairlane.store.contract.upkeep import PruneReply, PruneRequest
from fairlane.store.sqlite.dead.letters import review_of
from fairlane.store.sqlite.history import add_to_batch
from fairlane.store.sqlite.query import all_rows, one_row, one_value
from fairlane.store.sqlite.size import read_size
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.job_tables import delete_finished, read_any
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("upkeep")

NO_REVIEW: Final = ReviewRecord()

MAX_SHRINK_PAGES: Final = 1_000
"""How many pages one pass returns to the disk: 4 MB, about 20 ms."""


def prune(tx: Transaction, request: PruneRequest) -> PruneReply:
    """Delete what is past its retention, oldest first; keys and free space only when nothing else is left."""
    keep, early = request.retention, _early(tx, request)
    cuts = _cuts(tx, request.retention, request.mark, early)
    over = _over(tx, request, cuts)
    states: Counter[State] = Counter()
    results = 0
    leaving: list[FinishedJob] = []
    for seq, job in over[: request.limit]:
        if job.state is State.DEAD or keep.is_over(job, NO_REVIEW, tx.now, cuts):
            if request.is_archived:
                leaving.append(finished_job(job, review_of(tx, seq)))
            delete_finished(tx, seq, job)
            states[job.state] += 1
        else:
            tx.write(_SQL.delete_result, seq)
            results += 1
    add_to_batch(tx, leaving)
    reply = PruneReply(
        states.total(), results, states=dict(states), has_more_early=early.has_more, size=_size(tx, request)
    )
    if len(over) > request.limit:
        last = over[request.limit - 1][1].settled_at or 0
        mark = mark_after(request.mark, tx.now, cuts, last)
        return msgspec.structs.replace(reply, is_partial=True, mark=mark)
    tx.flush()
    keys = all_rows(tx.db, _SQL.delete_old_keys, (tx.now - keep.keys, request.scope.tenant))
    _shrink(tx)
    return msgspec.structs.replace(reply, keys=len(keys), mark=mark_after(request.mark, tx.now, cuts))


def _size(tx: Transaction, request: PruneRequest) -> StoreSize | None:
    return read_size(tx) if request.is_measured else None


def _early(tx: Transaction, request: PruneRequest) -> EarlyCut:
    """Return what goes early. A sweep that is under way has its cut, and does not know what comes after."""
    if not request.is_early or request.mark.is_under_way:
        return EarlyCut(has_more=request.is_early)
    rows = all_rows(tx.db, _SQL.oldest_finished, (request.mark.cut, request.limit))
    return early_cut([settled_at for (settled_at,) in rows], request.limit)


def _cuts(tx: Transaction, keep: Retention, mark: PruneMark, early: EarlyCut) -> CountCuts:
    """Return the settlements of the last jobs that limits by number and by size keep."""

    def settled_at(statement: str, newest: int | None) -> Instant:
        row = None if newest is None else one_row(tx.db, statement, (newest - 1,))
        return 0 if row is None else int(row[0])

    finished = mark.next_cut
    if not mark.is_under_way:
        finished = max(settled_at(_SQL.newest_finished, keep.newest_finished), early.at)
    return CountCuts(finished, settled_at(_SQL.newest_dead, keep.newest_dead))


def _over(tx: Transaction, request: PruneRequest, cuts: CountCuts) -> list[tuple[int, JobRecord]]:
    """Return what is past its retention, oldest first, one more than asked for if there is more.

    Each part comes in the order of an index, so that no pass reads more than it removes.
    """
    keep, limit = request.retention, request.limit + 1
    names = {
        "tenant": request.scope.tenant,
        "now": tx.now,
        "has_own": keep.has_own,
        "queues": _json(keep.queues),
        "tenants": _json(keep.tenants),
        "tasks": _json(keep.tasks),
    }
    history = names | {
        "succeeded": keep.succeeded,
        "cancelled": keep.cancelled,
        "results": keep.results,
        "cut": cuts.finished,
    }
    letters = names | {
        "dead": keep.dead,
        "dead_reviewed": keep.dead_reviewed,
        "is_from_review": keep.is_from_review,
        "dead_cut": cuts.dead,
        "died_by": max(tx.now - keep.shortest_dead, cuts.dead - 1),
    }
    over = _read(tx, _SQL.letters_over, letters | {"limit": limit})
    left = limit
    for span in spans(keep, tx.now, cuts, request.mark):
        part = {"first": span.first, "last": span.last, "limit": left}
        found = _read(tx, _SQL.history_over, history | part)
        over += found
        left -= len(found)
        if not left:
            break
    return sorted(over, key=lambda one: (one[1].settled_at or 0, one[1].id.bytes))[:limit]


def _read(tx: Transaction, statement: str, values: dict[str, Any]) -> list[tuple[int, JobRecord]]:
    """Return jobs with the numbers of their bodies, from rows that end with the time of their own."""
    return [(row[0], read_any(row[:-1])) for row in tx.db.execute(statement, values)]


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _shrink(tx: Transaction) -> None:
    """Return free pages to the disk, a part at a time; a quarter of the file stays free for the next jobs."""
    free, pages = one_value(tx.db, "PRAGMA freelist_count"), one_value(tx.db, "PRAGMA page_count")
    surplus = min(free - pages // 4, MAX_SHRINK_PAGES)
    if surplus > 0:
        all_rows(tx.db, f"PRAGMA incremental_vacuum({surplus})")
