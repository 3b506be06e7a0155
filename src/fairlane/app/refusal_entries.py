"""Make the entries of what only this process can see: refusals, `as_system`, full queues (S60, S76).

Appends nothing; a `JournalBuffer` holds the entries until somebody sends them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from fairlane.app.acting import current_actor, current_origin
from fairlane.app.job import Job
from fairlane.model.journal.entries import JournalName, NewEntry
from fairlane.model.journal.kinds import EventKind
from fairlane.model.journal.operations import Operation, entry_of

REFUSED: Final = "tenant.refused"
AS_SYSTEM: Final = "as_system"

_encode: Final = msgspec.json.Encoder(order="sorted").encode


def foreign_tenant(tenant: str, job: Job[Any] | None, target: str) -> Iterator[tuple[JournalName, NewEntry]]:
    """Yield the entries of code of one tenant that has named another.

    They are for operators alone: what a tenant sees must not name its neighbours.
    """
    subject = _from(f"tenant {target}", tenant, job)
    yield "audit", _audited(REFUSED, subject, tenant, job)
    about = {} if job is None else {"job": str(job.id), "queue": job.queue, "task": job.task}
    body = _encode({**about, "tenant": tenant, "target": target})
    yield "events", NewEntry(kind=EventKind.TENANT_MISMATCH.value, subject=subject, body=body)


def as_system_entry(tenant: str | None, job: Job[Any] | None, reason: str) -> NewEntry:
    """Return the entry of code that acts for all tenants, with its reason."""
    return _audited(AS_SYSTEM, _from("all tenants", tenant, job), tenant, job, reason)


def queue_full(queue: str, waiting: int, limit: int, count: int) -> NewEntry:
    """Return the event of jobs that a full queue has refused."""
    body = _encode({"queue": queue, "waiting": waiting, "limit": limit})
    return NewEntry(kind=EventKind.QUEUE_FULL.value, subject=queue, count=count, body=body)


def _audited(action: str, subject: str, tenant: str | None, job: Job[Any] | None, note: str = "") -> NewEntry:
    actor = current_actor() if job is None else f"task {job.task}"
    details: dict[str, Any] = {} if tenant is None else {"tenant": tenant}
    if job is not None:
        details["job"] = str(job.id)
    done = Operation(action=action, actor=actor, origin=current_origin(), note=note, details=details)
    return entry_of(done, subject, None)


def _from(subject: str, tenant: str | None, job: Job[Any] | None) -> str:
    """Return a subject that differs by tenant and task, since entries of one subject are folded."""
    whose = "" if tenant is None else f" from tenant {tenant}"
    return f"{subject}{whose}" + ("" if job is None else f", task {job.task}")
