"""Review dead letters, and delete them. What may follow what is the model's."""

from __future__ import annotations

from uuid import UUID

from fairlane.model.journal import facts
from fairlane.model.review import reviewed
from fairlane.store.audit_entries import delete_entries, review_entries
from fairlane.store.contract.dead import DeleteRequest, ReviewReply, ReviewRequest
from fairlane.store.sqlite.dead.letters import find_letter, write_review
from fairlane.store.sqlite.tables.job_tables import delete_finished
from fairlane.store.sqlite.transaction import Transaction


def review(tx: Transaction, request: ReviewRequest) -> tuple[ReviewReply, ...]:
    """Do something about each of these dead letters, and say what became of it."""
    replies = []
    seen: set[UUID] = set()
    for id in request.ids:
        if id in seen:
            tx.flush()  # an id twice in a request: the second must see what the first did
        seen.add(id)
        replies.append(_review(tx, request, id))
    return tuple(replies)


def _review(tx: Transaction, request: ReviewRequest, id: UUID) -> ReviewReply:
    stored = find_letter(tx, request, id)
    if stored is None:
        return ReviewReply(id, "not_found")
    job, before = stored.letter.job, stored.letter.review
    after = reviewed(before, request.action, request.who, request.note, tx.now)
    if after is None:
        return ReviewReply(id, "not_allowed", before.review)
    write_review(tx, stored.seq, after)
    tx.append("audit", review_entries(request.operation, id, job.tenant, before, after))
    if after.review != before.review:
        tx.append("events", [facts.reviewed(job, stored.letter.fingerprint, after.review)])
    return ReviewReply(id, "done", after.review)


def delete(tx: Transaction, request: DeleteRequest) -> tuple[UUID, ...]:
    """Delete dead letters with their jobs; return the ids of those that were."""
    gone = []
    for id in dict.fromkeys(request.ids):
        stored = find_letter(tx, request, id)
        if stored is None:
            continue
        job = stored.letter.job
        delete_finished(tx, stored.seq, job)
        tx.append("audit", delete_entries(request.operation, id, job.tenant, stored.letter.review))
        tx.append("events", [facts.reviewed(job, stored.letter.fingerprint, "deleted")])
        gone.append(id)
    return tuple(gone)
