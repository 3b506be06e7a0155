"""Make the entries of the audit that a verb appends when an operator has asked for it (S60).

Every store appends these, in the step that changes something. Without an operation, or if nothing has
changed, there are none. Knows no store and appends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

import msgspec

from fairlane.model.access_records import AccessRecord, UserRecord, audited
from fairlane.model.job import JobRecord
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.kinds import EventKind
from fairlane.model.journal.operations import Operation, created_entry, entry_of, job_entry
from fairlane.model.policy.overrides import EVERY, Subject, SubjectKind
from fairlane.model.review import ReviewRecord
from fairlane.model.schedule.kept import audited as schedule_audited
from fairlane.store.policy_records import NO_POLICY, StoredPolicy
from fairlane.store.policy_verbs import PolicyPart
from fairlane.store.schedule_rows import ChangedSchedule

_FOLLOWED: Final = Operation(action=EventKind.REPROCESS_SUCCESS.value, actor="fairlane", origin="duty")


def policy_entries(
    operation: Operation | None, subject: Subject, part: PolicyPart, before: object, after: object
) -> tuple[NewEntry, ...]:
    """Return the entry of a part of a policy that was replaced; rules for every tenant are no tenant's.

    >>> ann = Operation(action="queues.resume", actor="ann", origin="cli")
    >>> policy_entries(ann, Subject(SubjectKind.QUEUE, "bulk"), "paused", None, None)
    ()
    """
    if operation is None or before == after:
        return ()
    is_tenants = subject.kind is SubjectKind.TENANT and subject.name != EVERY
    tenant = subject.name if is_tenants else None
    return (entry_of(operation, str(subject), tenant, _part(part, before), _part(part, after)),)


def removal_entries(
    operation: Operation | None, subject: Subject, before: StoredPolicy
) -> tuple[NewEntry, ...]:
    """Return the entry of a queue whose whole policy was removed.

    >>> ann = Operation(action="queues.remove", actor="ann", origin="cli")
    >>> removal_entries(ann, Subject(SubjectKind.QUEUE, "bulk"), NO_POLICY)
    ()
    """
    if operation is None or before == NO_POLICY:
        return ()
    known = {part: value for part, value in msgspec.structs.asdict(before).items() if value is not None}
    return (entry_of(operation, str(subject), None, msgspec.to_builtins(known), None),)


def job_entries(
    operation: Operation | None, changes: Iterable[tuple[JobRecord, JobRecord]]
) -> tuple[NewEntry, ...]:
    """Return the entries of jobs that were changed: each as it was, and as it is."""
    if operation is None:
        return ()
    return tuple(job_entry(operation, before, after) for before, after in changes if before != after)


def created_entries(operation: Operation | None, jobs: Iterable[JobRecord]) -> tuple[NewEntry, ...]:
    """Return the entries of jobs that were made."""
    return () if operation is None else tuple(created_entry(operation, job) for job in jobs)


def question_entries(operation: Operation | None, worker: str) -> tuple[NewEntry, ...]:
    """Return the entry of a question that was left for a worker."""
    return () if operation is None else (entry_of(operation, f"worker {worker}", None),)


def access_entries(
    operation: Operation | None, changes: Iterable[tuple[AccessRecord | None, AccessRecord | None]]
) -> tuple[NewEntry, ...]:
    """Return the entries of records that were made, changed or removed; none names a hash.

    A record of one tenant is that tenant's business; one that moves from a tenant to another is neither's.

    >>> ann = Operation(action="users.set", actor="ann", origin="cli")
    >>> from fairlane.model.access import Role
    >>> bob = UserRecord(name="bob", role=Role.VIEWER, password_hash="1", created_by="ann")
    >>> new = msgspec.structs.replace(bob, role=Role.OPERATOR, password_hash="2")
    >>> access_entries(ann, [(bob, new)])[0].body.decode()[15:]
    '"after":{"password":"changed","role":"operator"},"before":{"role":"viewer"},"origin":"cli"}'
    """
    if operation is None:
        return ()
    return tuple(_access_entry(operation, before, after) for before, after in changes if before != after)


def schedule_entries(operation: Operation | None, change: ChangedSchedule) -> tuple[NewEntry, ...]:
    """Return the entry of a schedule that somebody has changed, or of which somebody has taken slots."""
    records = [None if row is None else row.record for row in (change.before, change.after)]
    was, now = map(schedule_audited, records)
    if operation is None or (was == now and not change.slots):
        return ()
    changed = [name for name in {**was, **now} if was.get(name) != now.get(name)]
    tenants = {record.tenant for record in records if record is not None}
    tenant = tenants.pop() if len(tenants) == 1 else None
    name = next(record.name for record in records if record is not None)
    before = {key: was[key] for key in changed if key in was}
    return (entry_of(operation, f"schedule {name}", tenant, before, {key: now.get(key) for key in changed}),)


def review_entries(
    operation: Operation | None, id: UUID, tenant: str, before: ReviewRecord, after: ReviewRecord
) -> tuple[NewEntry, ...]:
    """Return the entry of a dead letter about which somebody did something.

    >>> ann = Operation(action="dead.resolve", actor="ann", origin="cli")
    >>> (entry,) = review_entries(ann, UUID(int=1), "acme", ReviewRecord(), ReviewRecord("resolved"))
    >>> entry.body
    b'{"actor":"ann","after":{"review":"resolved"},"before":{"review":"pending"},"origin":"cli"}'
    """
    if operation is None or before == after:
        return ()
    was, now = _review(before), _review(after)
    changed = [name for name in was if was[name] != now[name]]
    return (entry_of(operation, str(id), tenant, _known(was, changed), _known(now, changed)),)


def reprocess_entries(
    operation: Operation | None, id: UUID, tenant: str, new_job: UUID
) -> tuple[NewEntry, ...]:
    """Return the entry of a dead letter in whose place another job runs now."""
    if operation is None:
        return ()
    after = {"review": "reprocessed", "new_job": str(new_job)}
    return (entry_of(operation, str(id), tenant, after=after),)


def delete_entries(
    operation: Operation | None, id: UUID, tenant: str, review: ReviewRecord
) -> tuple[NewEntry, ...]:
    """Return the entry of a dead letter that was deleted."""
    if operation is None:
        return ()
    return (entry_of(operation, str(id), tenant, before={"review": review.review}),)


def success_entry(id: UUID, tenant: str, new_job: UUID) -> NewEntry:
    """Return the entry of a dead letter in whose place another job has succeeded: a duty saw it.

    >>> success_entry(UUID(int=1), "acme", UUID(int=2)).kind
    'job_dlq_reprocess_success'
    """
    return entry_of(_FOLLOWED, str(id), tenant, after={"new_job": str(new_job)})


def _access_entry(operation: Operation, before: AccessRecord | None, after: AccessRecord | None) -> NewEntry:
    was, now = audited(before), dict(audited(after))
    if isinstance(before, UserRecord) and isinstance(after, UserRecord):
        same = [name for name in was if was[name] == now.get(name)]
        was = {name: value for name, value in was.items() if name not in same}
        now = {name: now.get(name) for name in {*was, *now} if name not in same}
        if before.password_hash != after.password_hash:
            now["password"] = "changed"  # noqa: S105 (says that there is another one)
    tenants = {getattr(record, "tenant", None) for record in (before, after) if record is not None}
    key = next(record.key for record in (after, before) if record is not None)
    return entry_of(
        operation, f"{key.kind} {key.name}", tenants.pop() if len(tenants) == 1 else None, was, now
    )


def _part(part: PolicyPart, value: object) -> dict[str, Any] | None:
    return None if value is None else {part: msgspec.to_builtins(value)}


def _review(record: ReviewRecord) -> dict[str, Any]:
    acknowledged = None if record.acknowledged is None else record.acknowledged.who
    return {"review": record.review, "acknowledged": acknowledged, "notes": len(record.notes)}


def _known(values: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: values[name] for name in names if values[name] is not None}
