"""Reprocess dead letters: enqueue a new job for each, and note it in the letter, in one transaction."""

from __future__ import annotations

from uuid import UUID

from fairlane.model.job import NewJob
from fairlane.model.journal.facts import reprocess_requested
from fairlane.model.lifecycle.admission import Refusal, RefusalKind, Repeat, admit
from fairlane.model.review import may_follow, reprocessed
from fairlane.store.audit_entries import reprocess_entries
from fairlane.store.contract.dead import Reprocessing, ReprocessReply, ReprocessRequest
from fairlane.store.sqlite.dead.letters import find_letter, write_review
from fairlane.store.sqlite.jobs.admission import Batch
from fairlane.store.sqlite.transaction import Transaction


def reprocess(tx: Transaction, request: ReprocessRequest) -> tuple[ReprocessReply, ...]:
    """Run each of these dead letters again, and say what became of it. No waiting limit counts."""
    batch = Batch(tx, [item.job for item in request.items], has_limits=False)
    replies = []
    seen: set[UUID] = set()
    for index, item in enumerate(request.items):
        if item.id in seen:
            tx.flush()  # a letter twice in a request: the second item must see what the first did
        seen.add(item.id)
        replies.append(_reprocess(tx, request, batch, index, item))
    batch.write()
    return tuple(replies)


def _reprocess(
    tx: Transaction, request: ReprocessRequest, batch: Batch, index: int, item: Reprocessing
) -> ReprocessReply:
    stored = find_letter(tx, request, item.id)
    if stored is None or stored.letter.job.tenant != item.job.tenant:
        return ReprocessReply(item.id, "not_found")
    job, record = stored.letter.job, stored.letter.review
    if job.checksum != item.checksum:
        return ReprocessReply(item.id, "changed", review=record.review)
    if record.review == "reprocessed" and record.new_run is not None:
        return ReprocessReply(item.id, "already", record.new_run.job, record.review)
    if not may_follow(record, "reprocess"):
        return ReprocessReply(item.id, "not_allowed", review=record.review)
    refusal = _take_in(batch, index, item.job)
    if refusal is not None:
        return ReprocessReply(item.id, "refused", review=record.review, refusal=refusal)
    after = reprocessed(record, item.job.id, request.who, request.note, tx.now)
    write_review(tx, stored.seq, after)
    tx.append("audit", reprocess_entries(request.operation, item.id, job.tenant, item.job.id))
    tx.append("events", [reprocess_requested(job, stored.letter.fingerprint, item.job.id)])
    return ReprocessReply(item.id, "reprocessed", item.job.id, after.review)


def _take_in(batch: Batch, index: int, new: NewJob) -> Refusal | None:
    """Take in a new job, or return why not: one that exists already is such a reason."""
    id = new.id.bytes
    admission = admit(index, new, batch.facts(new, id, batch.rules(new)), repeated=False)
    if isinstance(admission, Refusal):
        return admission
    if isinstance(admission, Repeat):
        return Refusal(index, RefusalKind.DUPLICATE, new.tenant, new.queue, existing=admission.existing)
    batch.take(new, id, admission)
    return None
