"""Edit a waiting job, or make it due now. Running and finished jobs are left alone."""

from __future__ import annotations

from uuid import UUID

import msgspec
from msgspec import UNSET

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.record_changes import due_now
from fairlane.model.lifecycle.states import WAITING, Event, State
from fairlane.model.scheduling.priority import sort_key
from fairlane.store.audit_entries import job_entries
from fairlane.store.contract.jobs import EditReply, EditRequest, RunNowRequest
from fairlane.store.sqlite.jobs.cancel import find_in_scope, move_each
from fairlane.store.sqlite.tables.job_tables import find_any, move, rewrite_body
from fairlane.store.sqlite.transaction import Transaction

_EDITABLE = ("priority", "run_at", "expires_at", "tags", "payload", "checksum", "version")


def edit(tx: Transaction, request: EditRequest) -> EditReply:
    """Change fields of a waiting job; say why not, if it cannot be changed."""
    live = find_in_scope(tx, request, request.id)
    if live is None:
        finished = find_any(tx, (request.id,)).get(request.id)
        is_known = finished is not None and request.scope.covers(finished.tenant)
        return EditReply("not_waiting" if is_known else "not_found")
    job = live.job
    if job.state not in WAITING:
        return EditReply("not_waiting")
    if request.run_at is not UNSET and job.state is not State.DELAYED:
        return EditReply("not_delayed")
    given = {name: getattr(request, name) for name in _EDITABLE}
    changed = msgspec.structs.replace(job, **{name: v for name, v in given.items() if v is not UNSET})
    if request.run_at is not UNSET and changed.run_at <= tx.now:
        changed = due_now(changed, tx.now)
    changed = msgspec.structs.replace(changed, sort_key=sort_key(changed.run_at, changed.priority))
    move(tx, live, changed)
    rewrite_body(tx, live.seq, changed)
    tx.append("audit", job_entries(request.operation, [(job, changed)]))
    tx.hint(job.queue)
    return EditReply("edited", changed)


def run_now(tx: Transaction, request: RunNowRequest) -> tuple[UUID, ...]:
    """Make delayed jobs due now; return the ids of those that were."""

    def due(job: JobRecord) -> JobRecord:
        tx.hint(job.queue)
        return due_now(job, tx.now)

    return move_each(tx, request, Event.RUN_NOW, due)
