"""Enqueue a batch of jobs: all of them, or none (S13-S18)."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.facts import over_limit
from fairlane.model.lifecycle.admission import Admitted, Refusal, Repeat, admit
from fairlane.store.audit_entries import created_entries
from fairlane.store.contract.jobs import Created, Enqueued, EnqueueReply, EnqueueRequest, OverLimit
from fairlane.store.sqlite.jobs.admission import Batch
from fairlane.store.sqlite.transaction import Transaction


def enqueue(tx: Transaction, request: EnqueueRequest) -> EnqueueReply:
    """Enqueue all jobs of a batch or none: all refusals are known before anything is written."""
    batch = Batch(tx, request.jobs, must_be_declared=request.must_be_declared)
    enqueued: list[Enqueued | Created] = []
    refused: list[Refusal] = []
    over: list[tuple[OverLimit, str | None]] = []
    for index, (id, new) in enumerate(zip(batch.ids, request.jobs, strict=True)):
        rules = batch.rules(new)
        has_key = new.idempotency_key is not None or new.dedup_key is not None
        if rules.is_open and not has_key and id not in batch.owners:
            enqueued.append(batch.add(new, id))
            continue
        admission = admit(index, new, batch.facts(new, id, rules), repeated=request.is_repeated)
        if isinstance(admission, Admitted):
            enqueued.append(batch.take(new, id, admission))
            if admission.over is not None:
                one = OverLimit(new.tenant, new.queue, batch.waiting(new), admission.over)
                over.append((one, new.created_by))
        elif isinstance(admission, Repeat):
            earlier = batch.earlier(new, admission.existing)
            enqueued.append(Enqueued(earlier, is_created=admission.existing == new.id))
        else:
            refused.append(admission)
    if refused:
        return EnqueueReply(refused=tuple(refused))
    batch.write()
    if over:
        tx.append("events", _warnings(over))
    if request.operation is not None:
        made = (one.job for one in batch.created.values())
        tx.append("audit", created_entries(request.operation, made))
    return EnqueueReply(tuple(enqueued), (), tuple(one for one, _ in over))


def _warnings(over: Iterable[tuple[OverLimit, str | None]]) -> list[NewEntry]:
    """Return one event for each tenant and queue: the last job says how many wait and who asked for it."""
    found: dict[tuple[str, str], NewEntry] = {}
    for one, created_by in over:
        before = found.get((one.tenant, one.queue))
        count = 1 if before is None else before.count + 1
        found[one.tenant, one.queue] = over_limit(
            one.tenant, one.queue, one.waiting, one.limit, count, created_by
        )
    return list(found.values())
