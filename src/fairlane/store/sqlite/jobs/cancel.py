"""Stop jobs: cancel them, request the cancellation of running ones, move them to the dead letters."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import msgspec

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.record_changes import stopped
from fairlane.model.lifecycle.states import TRANSITIONS, Because, CancelReply, Event, State, because
from fairlane.store.audit_entries import job_entries
from fairlane.store.contract.jobs import RunNowRequest, StopRequest
from fairlane.store.contract.request import Request
from fairlane.store.sqlite.tables.job_tables import LiveJob, find_any, find_live, move
from fairlane.store.sqlite.transaction import Transaction


def cancel(tx: Transaction, request: StopRequest) -> dict[UUID, CancelReply]:
    """Cancel waiting jobs and request the cancellation of running ones; finished ones stay as they are."""
    reason = because(Because.ASKED, request.reason)
    replies: dict[UUID, CancelReply] = {}
    changes: list[tuple[JobRecord, JobRecord]] = []
    for id in request.ids:
        tx.flush()
        live = find_in_scope(tx, request, id)
        if live is None:
            finished = find_any(tx, (id,)).get(id)
            if finished is not None and request.scope.covers(finished.tenant):
                replies.setdefault(id, CancelReply.FINISHED)
            continue
        if (live.job.state, Event.CANCEL) in TRANSITIONS:
            changes.append((live.job, move(tx, live, stopped(live.job, State.CANCELLED, reason, tx.now))))
            replies[id] = CancelReply.CANCELLED
        else:
            changes.append((live.job, request_cancel(tx, live, reason)))
            replies[id] = CancelReply.REQUESTED
    tx.append("audit", job_entries(request.operation, changes))
    return replies


def request_cancel(tx: Transaction, live: LiveJob, reason: str) -> JobRecord:
    """Request the cancellation of a running job and wake its worker; the first reason stays."""
    tx.hint_worker(str(live.job.worker))
    if live.job.is_cancel_asked:
        return live.job
    return move(tx, live, msgspec.structs.replace(live.job, is_cancel_asked=True, because=reason))


def condemn(tx: Transaction, request: StopRequest) -> tuple[UUID, ...]:
    """Move waiting jobs to the dead letters; return the ids of those that were."""
    reason = because(Because.CONDEMNED, request.reason)

    def condemned(job: JobRecord) -> JobRecord:
        return stopped(job, State.DEAD, reason, tx.now)

    return move_each(tx, request, Event.CONDEMN, condemned)


def move_each(
    tx: Transaction,
    request: StopRequest | RunNowRequest,
    event: Event,
    becomes: Callable[[JobRecord], JobRecord],
) -> tuple[UUID, ...]:
    """Move the jobs for which an event is a legal transition; return their ids."""
    changes = []
    for id in dict.fromkeys(request.ids):
        live = find_in_scope(tx, request, id)
        if live is not None and (live.job.state, event) in TRANSITIONS:
            changes.append((live.job, move(tx, live, becomes(live.job))))
    tx.append("audit", job_entries(request.operation, changes))
    return tuple(after.id for _, after in changes)


def find_in_scope(tx: Transaction, request: Request, id: UUID) -> LiveJob | None:
    """Return a live job, unless it belongs to a tenant outside the scope of the request."""
    live = find_live(tx, id)
    return live if live is not None and request.scope.covers(live.job.tenant) else None
