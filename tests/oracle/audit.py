"""What the verbs of the oracle append to the audit: what an operation changed, and nothing if it did not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import msgspec

from fairlane.model.access_records import AccessRecord, UserRecord, audited
from fairlane.model.job import JobRecord
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.operations import Operation, created_entry, entry_of, job_entry
from fairlane.model.policy.overrides import EVERY, Hold, Override, Subject, SubjectKind
from fairlane.model.review import ReviewRecord
from fairlane.model.schedule.kept import audited as schedule_audited
from fairlane.model.schedule.records import ScheduleRecord, SlotRow
from tests.oracle.core import Core


class Audit:
    """Appends entries for one request; without an operation it appends none."""

    def __init__(self, core: Core, operation: Operation | None) -> None:
        """Append to the audit of this installation."""
        self._core = core
        self._operation = operation

    def changed(self, before: JobRecord, after: JobRecord) -> None:
        """Append how a job was changed."""
        if self._operation is not None and before != after:
            self._append(job_entry(self._operation, before, after))

    def created(self, job: JobRecord) -> None:
        """Append a job that was made."""
        if self._operation is not None:
            self._append(created_entry(self._operation, job))

    def policy(
        self, subject: Subject, part: str, before: Hold | Override | None, after: Hold | Override | None
    ) -> None:
        """Append how one part of a policy was changed."""
        if self._operation is None or before == after:
            return
        is_one_tenant = subject.kind is SubjectKind.TENANT and subject.name != EVERY
        was = {} if before is None else {part: msgspec.to_builtins(before)}
        now = {} if after is None else {part: msgspec.to_builtins(after)}
        tenant = subject.name if is_one_tenant else None
        self._append(entry_of(self._operation, str(subject), tenant, was, now))

    def removal(self, subject: Subject, before: Mapping[str, object]) -> None:
        """Append what a policy was that is gone as a whole."""
        was = {part: msgspec.to_builtins(value) for part, value in before.items() if value is not None}
        if self._operation is not None and was:
            self._append(entry_of(self._operation, str(subject), None, was))

    def asked(self, worker: str) -> None:
        """Append a question to a worker."""
        if self._operation is not None:
            self._append(entry_of(self._operation, f"worker {worker}", None))

    def access(self, before: AccessRecord | None, after: AccessRecord | None) -> None:
        """Append how a record of access was changed; of the password only that it was."""
        if self._operation is None or before == after:
            return
        was, now = dict(audited(before)), dict(audited(after))
        if isinstance(before, UserRecord) and isinstance(after, UserRecord):
            other = {name for name in {*was, *now} if was.get(name) != now.get(name)}
            now = {name: now.get(name) for name in other}
            was = {name: value for name, value in was.items() if name in other}
            if before.password_hash != after.password_hash:
                now["password"] = "changed"
        known = [record for record in (after, before) if record is not None]
        tenants = {getattr(record, "tenant", None) for record in known}
        tenant = tenants.pop() if len(tenants) == 1 else None
        self._append(entry_of(self._operation, f"{known[0].key.kind} {known[0].key.name}", tenant, was, now))

    def schedule(
        self, before: ScheduleRecord | None, after: ScheduleRecord | None, slots: Iterable[SlotRow]
    ) -> None:
        """Append how a schedule was changed, or that its slots were taken."""
        was, now = schedule_audited(before), schedule_audited(after)
        if self._operation is None or (was == now and not list(slots)):
            return
        other = {name for name in {*was, *now} if was.get(name) != now.get(name)}
        known = [record for record in (after, before) if record is not None]
        tenants = {record.tenant for record in known}
        self._append(
            entry_of(
                self._operation,
                f"schedule {known[0].name}",
                tenants.pop() if len(tenants) == 1 else None,
                {name: value for name, value in was.items() if name in other},
                {name: now.get(name) for name in other},
            )
        )

    def reviewed(self, job: JobRecord, before: ReviewRecord, after: ReviewRecord) -> None:
        """Append what was done about a dead letter."""
        was, now = _review(before), _review(after)
        names = [name for name, value in now.items() if was[name] != value]
        self._letter(job, {name: was[name] for name in names}, {name: now[name] for name in names})

    def reprocessed(self, job: JobRecord, new_job: UUID) -> None:
        """Append that another job runs in place of a dead one."""
        self._letter(job, {}, {"review": "reprocessed", "new_job": str(new_job)})

    def deleted(self, job: JobRecord, before: ReviewRecord) -> None:
        """Append that a dead letter is gone."""
        self._letter(job, {"review": before.review}, {})

    def _letter(self, job: JobRecord, before: dict[str, Any], after: dict[str, Any]) -> None:
        if self._operation is not None:
            before = {name: value for name, value in before.items() if value is not None}
            self._append(entry_of(self._operation, str(job.id), job.tenant, before, after))

    def _append(self, entry: NewEntry) -> None:
        self._core.append("audit", entry)


def _review(record: ReviewRecord) -> dict[str, Any]:
    who = None if record.acknowledged is None else record.acknowledged.who
    return {"review": record.review, "acknowledged": who, "notes": len(record.notes)}
